"""Views of a call and its result, with the tools' projectors contained.

A projector that raises, or gives something that is no view, falls back to the generic card.
"""

from __future__ import annotations

import logging
from typing import Any

from attrs import frozen
from dsh_hookspecs import (
    Content,
    GenericCall,
    GenericResult,
    JsonValue,
    ToolCallView,
    ToolExecution,
    ToolExecutionResult,
    ToolResultView,
)

from dsh_runtime.tools.definition import ToolDefinition

_log = logging.getLogger("dsh.presentation")


@frozen
class DurableResult:
    """What lasts of a result, and all that ``present_result`` gets to see of it."""

    content: Content
    is_error: bool
    meta: JsonValue = None

    @classmethod
    def of(cls, result: ToolExecutionResult) -> DurableResult:
        """The durable part of a result."""
        return cls(result.content, result.is_error, result.meta)


def present_call(definition: ToolDefinition | None, exec: ToolExecution) -> ToolCallView:
    """The pending view of a call."""
    if definition is not None and definition.present_call is not None:
        view = _project(definition.name, "present_call", definition.present_call, exec.arguments)
        if isinstance(view, ToolCallView):
            return view
    return GenericCall(title=exec.name, raw_input=exec.arguments)


def present_result(definition: ToolDefinition | None, arguments: JsonValue, result: DurableResult) -> ToolResultView:
    """The completed view of a call."""
    if definition is not None and definition.present_result is not None:
        view = _project(definition.name, "present_result", definition.present_result, arguments, result)
        if isinstance(view, ToolResultView):
            return view
    return GenericResult(content=result.content)


def _project(tool: str, what: str, project: Any, *args: Any) -> Any:
    try:
        return project(*args)
    except Exception:
        _log.exception("%s of tool %r failed; the generic card is shown", what, tool)
        return None
