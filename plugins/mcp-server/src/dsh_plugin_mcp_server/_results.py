"""A call's result in MCP's form.

Content goes out in the order it came, then the content of the context messages that the call attached: they are meant
for the model's next turn, and MCP has no other way to it. ``meta`` stays in the host. The canonical value is the
structured content: any value since protocol 2026-07-28, objects alone before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from attrs import frozen
from dsh_hookspecs import ToolExecutionResult, ToolExecutionSuccess
from mcp_types import ContentBlock
from pydantic import TypeAdapter, ValidationError

from dsh_plugin_mcp_server._limits import Limits
from dsh_plugin_mcp_server._wire import encode_json


@frozen
class ResultForm:
    """How results look to one client."""

    limits: Limits

    def of(self, result: ToolExecutionResult, *, modern: bool) -> dict[str, Any]:
        """The MCP result; a plain error in its place if it is too large or too deep.

        ``modern``: structured content may be any value, not only an object.
        """
        wire = _unbounded(result, modern)
        excess = self.limits.excess(wire)
        if excess is None:
            return wire
        return failure(f"Error: the result {excess}; ask for less")


def failure(text: str) -> dict[str, Any]:
    """An MCP result that says what went wrong."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _unbounded(result: ToolExecutionResult, modern: bool) -> dict[str, Any]:
    blocks = [block(each) for each in result.content]
    for message in result.additional_contexts:
        blocks.extend(block(each) for each in message.content)
    wire: dict[str, Any] = {"content": blocks, "isError": result.is_error}
    if isinstance(result, ToolExecutionSuccess) and (modern or isinstance(result.value, Mapping)):
        wire["structuredContent"] = result.value
    return wire


def block(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """A content block as MCP knows it; one that MCP does not know becomes the text of its JSON."""
    if content.keys() == _TEXT and content["type"] == "text" and isinstance(content["text"], str):
        return content
    try:
        known = _blocks().validate_python(content, by_name=False)
    except ValidationError:
        return {"type": "text", "text": encode_json(content).decode()}
    return _blocks().dump_python(known, by_alias=True, mode="json", exclude_none=True)  # type: ignore[no-any-return]


_TEXT = {"type", "text"}


@cache
def _blocks() -> TypeAdapter[ContentBlock]:
    return TypeAdapter(ContentBlock)
