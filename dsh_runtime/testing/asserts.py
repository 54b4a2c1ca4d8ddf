"""Assertions about results that say, when they fail, where the result differs, and who decided what about the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dsh_hookspecs import ToolExecutionFailure, ToolExecutionResult, ToolExecutionSuccess

from dsh_runtime.testing.differences import differences, same, shown
from dsh_runtime.testing.stories import story_of, told

_ANY: Final[Any] = object()


def tell(result: ToolExecutionResult) -> str:
    """A result in a few lines, for a person: what came out, who decided it, and what everybody said."""
    if result.is_error:
        lines = [f"a failure: {result.error.message}"]
        info = result.error.info
        if info is not None:
            lines.append(f"code: {info.code}, decided by: {info.plugin or 'the host'}, raised as: {info.name}")
    else:
        lines = ["a success", f"value: {shown(result.value)}"]
    lines.append(f"content: {shown(result.content)}")
    lines += [f"context: {shown(context.content)}" for context in result.additional_contexts]
    story = story_of(result)
    lines += ["who was asked:", *(f"  {step}" for step in told(story))] if story else []
    return "\n  ".join(lines)


def assert_ok(result: ToolExecutionResult, value: Any = _ANY, *, content: Any = _ANY) -> ToolExecutionSuccess:
    """The call succeeded, with this value and content if they are given; gives back the success."""
    __tracebackhide__ = True
    if result.is_error:
        raise AssertionError(f"expected a success, got {tell(result)}")
    for what, expected, got in (("value", value, result.value), ("content", content, result.content)):
        if expected is not _ANY and not same(expected, got):
            raise AssertionError(_differing(f"the {what} is not what was expected", expected, got, what, result))
    return result


def _differing(text: str, expected: Any, got: Any, what: str, result: ToolExecutionResult) -> str:
    return "\n  ".join([f"{text}:", *differences(expected, got, what), f"of {tell(result)}"])


def assert_failed(
    result: ToolExecutionResult, code: Any = _ANY, *, plugin: Any = _ANY, message: str = ""
) -> ToolExecutionFailure:
    """The call failed, with this code, by this plugin's decision, with these words in its message; gives it back."""
    __tracebackhide__ = True
    if not result.is_error:
        raise AssertionError(f"expected a failure, got {tell(result)}")
    info = result.error.info
    if code is not _ANY and (info.code if info is not None else None) != code:
        raise AssertionError(f"expected the code {code}, got {tell(result)}")
    if plugin is not _ANY and (info.plugin if info is not None else None) != plugin:
        raise AssertionError(f"expected {_named(plugin)} to have decided, got {tell(result)}")
    if message not in result.error.message:
        raise AssertionError(f"expected {message!r} in the message, got {tell(result)}")
    return result


def _named(plugin: str | None) -> str:
    return f"plugin {plugin!r}" if plugin is not None else "the host"


def assert_denied(result: ToolExecutionResult, *, plugin: Any = _ANY, reason: str = "") -> ToolExecutionFailure:
    """Policy said no before the body: a listener or a guard, or a person who was asked; gives back the failure."""
    __tracebackhide__ = True
    if not result.is_error or not is_denial(result):
        raise AssertionError(f"expected a denial, got {tell(result)}")
    return assert_failed(result, plugin=plugin, message=reason)


def is_denial(result: ToolExecutionResult) -> bool:
    """Whether a call was refused by a decision: a denial, a guard's reason, or what became of an ask."""
    info = result.error.info if result.is_error else None
    code = info.code if info is not None else None
    return code in ("DENIED", "GUARDED") or (code or "").startswith("APPROVAL_")


def assert_told(result: ToolExecutionResult, *steps: Sequence[str]) -> None:
    """These steps, each a plugin and its answer in one word, stand in the call's story in this order."""
    __tracebackhide__ = True
    found = [(step.get("plugin"), step["answer"]) for step in story_of(result)]
    rest = iter(found)
    for plugin, answer in steps:
        if (plugin, answer) not in rest:
            raise AssertionError(f"expected {plugin!r} to have answered {answer!r} in its turn, got {tell(result)}")
