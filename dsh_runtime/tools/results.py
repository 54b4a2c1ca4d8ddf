"""Results: how a value becomes canonical and rendered, and how a candidate is made final."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dsh_hookspecs import (
    ContextMessage,
    JsonValue,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolExecutionSuccess,
    ToolFailure,
    ToolOutputError,
)

from dsh_runtime.tools.failures import ORDINARY, clean, message_of, text_content
from dsh_runtime.tools.registry import RegisteredTool
from dsh_runtime.values import FrozenList, Mismatch, snapshot_json


class _OpenSuccess:
    """A success that can still be filled in; becomes a :class:`ToolExecutionSuccess` once it is."""

    __slots__ = ("additional_contexts", "concludes_turn", "content", "meta", "value")


def make_success(
    value: JsonValue, content: FrozenList, meta: JsonValue, contexts: Sequence[ContextMessage], concludes_turn: bool
) -> ToolExecutionSuccess:
    """Fill in a success and freeze it. (Assigning, then changing the class, costs half of frozen attrs.)"""
    success: Any = _OpenSuccess()
    success.value = value
    success.content = content
    success.meta = meta
    success.additional_contexts = contexts
    success.concludes_turn = concludes_turn
    success.__class__ = ToolExecutionSuccess
    return success  # type: ignore[no-any-return]


def canonical(tool: RegisteredTool, value: Any, max_depth: int) -> JsonValue:
    """``value`` checked against the tool's output schema and frozen; :class:`ToolOutputError` lists what is wrong."""
    try:
        return tool.output.freeze(value, max_depth)
    except Mismatch:
        pass
    frozen = _snapshot(value, max_depth, f"the value of tool {tool.name!r}")
    violations = tool.output.explain(frozen, "value")
    if violations:
        raise ToolOutputError(
            f"tool {tool.name!r} returned a value that its output schema refuses: {_listed(violations)}", violations
        )
    return frozen


def rendered(
    tool: RegisteredTool, args: Any, value: JsonValue, top_level: bool, max_depth: int
) -> tuple[FrozenList, JsonValue]:
    """Content and meta of a canonical value; meta for a top-level call only."""
    output = tool.definition.output
    if output.render is None:
        content = default_content(value)
    else:
        content = _projected(tool, "render", output.render, args, value, max_depth)
        check_blocks(content, f"render of tool {tool.name!r}")
    return content, projected_meta(tool, args, value, top_level, max_depth)


def projected_meta(tool: RegisteredTool, args: Any, value: JsonValue, top_level: bool, max_depth: int) -> JsonValue:
    """The meta of a canonical value; for a top-level call only."""
    project = tool.definition.output.presentation_meta
    if project is None or not top_level:
        return None
    meta: JsonValue = _projected(tool, "presentation_meta", project, args, value, max_depth)
    return meta


def default_content(value: JsonValue) -> FrozenList:
    """The rendering of a tool that has none: a text as it is, anything else as JSON."""
    return text_content(value if type(value) is str else json.dumps(value, ensure_ascii=False))


def check_blocks(content: Any, subject: str) -> None:
    """Raise unless ``content`` is a list of blocks that each have a type."""
    if isinstance(content, list) and all(
        isinstance(block, dict) and isinstance(block.get("type"), str) for block in content
    ):
        return
    raise ToolOutputError(f"{subject} gave {content!r:.200}; content is a list of blocks that each have a 'type'")


def frozen_content(content: Any, subject: str, max_depth: int) -> FrozenList:
    """Content from a policy or a tool, checked and frozen."""
    frozen: Any = content if type(content) is FrozenList else _snapshot(content, max_depth, f"the content of {subject}")
    check_blocks(frozen, subject)
    return frozen  # type: ignore[no-any-return]


def materialise(result: ToolExecutionResult, max_depth: int) -> ToolExecutionResult:
    """The candidate with every part lossless and frozen; the same object where it already is."""
    content = frozen_content(result.content, "the result", max_depth)
    meta = result.meta if result.meta is None else _snapshot(result.meta, max_depth, "the result's meta")
    contexts = frozen_contexts(result.additional_contexts, max_depth)
    if result.is_error:
        return ToolExecutionFailure(_cleaned(result.error), content, meta, contexts)
    if content is result.content and meta is result.meta and contexts is result.additional_contexts:
        return result
    return ToolExecutionSuccess(result.value, content, meta, contexts, result.concludes_turn)


def frozen_message(message: ContextMessage, max_depth: int) -> ContextMessage:
    """A context message with content and meta frozen; the same object where they already are."""
    content = frozen_content(message.content, f"a context message from {message.source!r}", max_depth)
    meta = message.meta if message.meta is None else _snapshot(message.meta, max_depth, "a context message's meta")
    if not isinstance(message.source, str) or clean(message.source) != message.source:
        raise ToolOutputError(f"a context message has the source {message.source!r}; name who it comes from")
    if content is message.content and meta is message.meta:
        return message
    return ContextMessage(content, message.source, meta)


def frozen_contexts(messages: Sequence[ContextMessage], max_depth: int) -> tuple[ContextMessage, ...]:
    """Context messages with everything in them frozen; the same tuple where they already are."""
    if type(messages) is tuple and not messages:
        return messages
    if not isinstance(messages, (list, tuple)) or not all(isinstance(message, ContextMessage) for message in messages):
        raise ToolOutputError(f"additional contexts are a list of ContextMessage, not {messages!r:.200}")
    frozen = tuple(frozen_message(message, max_depth) for message in messages)
    same = type(messages) is tuple and all(a is b for a, b in zip(frozen, messages, strict=True))
    return messages if same else frozen  # type: ignore[return-value]


def _projected(tool: RegisteredTool, what: str, project: Any, args: Any, value: JsonValue, max_depth: int) -> Any:
    try:
        outcome = project(args, value)
    except ORDINARY as error:
        text = f"{what} of tool {tool.name!r} raised {type(error).__name__}: {message_of(error)}"
        raise ToolOutputError(text) from error
    return _snapshot(outcome, max_depth, f"what {what} of tool {tool.name!r} gave")


def _snapshot(value: Any, max_depth: int, subject: str) -> JsonValue:
    if type(value) is str and value.isascii():
        return value
    try:
        return snapshot_json(value, max_depth=max_depth)
    except Exception as error:
        raise ToolOutputError(f"{subject} is no lossless JSON: {message_of(error)}") from error


def _cleaned(error: ToolFailure) -> ToolFailure:
    """A failure whose texts JSON can carry."""
    message, info = _clean(error.message) or "", error.info
    if info is not None:
        info = ToolErrorInfo(_clean(info.name) or "Error", _clean(info.code), _clean(info.plugin))
    return ToolFailure(message, info)


def _clean(text: Any) -> str | None:
    return None if text is None else clean(str(text))


def _listed(violations: Sequence[Any]) -> str:
    shown = "; ".join(str(violation) for violation in violations[:5])
    more = len(violations) - 5
    return f"{shown}; and {more} more" if more > 0 else shown
