"""Assertions about results that say, when they fail, what the result was and who decided it."""

from __future__ import annotations

import json
from typing import Any, Final

from dsh_hookspecs import ToolExecutionFailure, ToolExecutionResult, ToolExecutionSuccess

_ANY: Final[Any] = object()


def tell(result: ToolExecutionResult) -> str:
    """A result in a few lines, for a person."""
    if not result.is_error:
        return f"a success\n  value: {_json(result.value)}\n  content: {_json(result.content)}"
    info = result.error.info
    lines = [f"a failure: {result.error.message}"]
    if info is not None:
        lines.append(f"  code: {info.code}, decided by: {info.plugin or 'the host'}, raised as: {info.name}")
    lines.append(f"  content: {_json(result.content)}")
    return "\n".join(lines)


def assert_ok(result: ToolExecutionResult, value: Any = _ANY, *, content: Any = _ANY) -> ToolExecutionSuccess:
    """The call succeeded, with this value and content if they are given; gives back the success."""
    if result.is_error:
        raise AssertionError(f"expected a success, got {tell(result)}")
    if value is not _ANY and result.value != value:
        raise AssertionError(f"expected the value {_json(value)}, got {tell(result)}")
    if content is not _ANY and result.content != content:
        raise AssertionError(f"expected the content {_json(content)}, got {tell(result)}")
    return result


def assert_failed(
    result: ToolExecutionResult, code: Any = _ANY, *, plugin: Any = _ANY, message: str = ""
) -> ToolExecutionFailure:
    """The call failed, with this code, by this plugin's decision, with these words in its message; gives it back."""
    if not result.is_error:
        raise AssertionError(f"expected a failure, got {tell(result)}")
    info = result.error.info
    if code is not _ANY and (info.code if info is not None else None) != code:
        raise AssertionError(f"expected the code {code}, got {tell(result)}")
    if plugin is not _ANY and (info.plugin if info is not None else None) != plugin:
        raise AssertionError(f"expected {plugin!r} to have decided, got {tell(result)}")
    if message not in result.error.message:
        raise AssertionError(f"expected {message!r} in the message, got {tell(result)}")
    return result


def assert_denied(result: ToolExecutionResult, *, plugin: Any = _ANY, reason: str = "") -> ToolExecutionFailure:
    """Policy said no before the body: a listener or a guard, or a person who was asked; gives back the failure."""
    failed = assert_failed(result, plugin=plugin, message=reason)
    code = failed.error.info.code if failed.error.info is not None else None
    if code not in ("DENIED", "GUARDED") and not (code or "").startswith("APPROVAL_"):
        raise AssertionError(f"expected a denial, got {tell(result)}")
    return failed


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 500 else f"{text[:500]}…"
