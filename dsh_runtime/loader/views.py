"""The views of a call as they are put on record."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dsh_hookspecs import JsonValue, JsonValueError, ToolExecutionResult

from dsh_runtime.tools.presentation import DurableResult, present_call, present_result

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call
    from dsh_runtime.tools.definition import ToolDefinition

Mask = Callable[[JsonValue], JsonValue]

_log = logging.getLogger("dsh.host")


def views_of(call: Call, result: ToolExecutionResult, mask: Mask) -> dict[str, JsonValue] | None:
    """The tool's own views as JSON, for a replay without the tool; the generic ones follow from the record itself.

    They are made of what is masked already: a view may say what an argument holds without its telling name.
    """
    definition = call.tool.definition if call.tool is not None else None
    if definition is None or (definition.present_call is None and definition.present_result is None):
        return None
    if not call.arguments_checked and definition.check is not None:
        return None  # A projector is for arguments that hold.
    from dsh_runtime.cards.stored import ViewError

    masked: Any = SimpleNamespace(name=call.exec.name, arguments=mask(call.exec.arguments))
    content: Any = mask(result.content)
    durable = DurableResult(content, result.is_error, mask(result.meta))
    try:
        return _project(definition, masked, durable) or None
    except (ViewError, JsonValueError) as error:
        _log.warning("a view of tool %r is not on record: %s", definition.name, error)
        return None


def _project(definition: ToolDefinition, exec: Any, result: DurableResult) -> dict[str, JsonValue]:
    from dsh_runtime.cards.stored import view_to_json

    views: dict[str, JsonValue] = {}
    if definition.present_call is not None:
        views["pending"] = view_to_json(present_call(definition, exec))
    if definition.present_result is not None:
        views["completed"] = view_to_json(present_result(definition, exec.arguments, result))
    return views
