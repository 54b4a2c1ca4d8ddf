"""The tool ``spill_read``: a window of a stored text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dsh_hookspecs import Content

from dsh_plugin_spill._store import Store, Window

if TYPE_CHECKING:
    from dsh_runtime import ToolDefinition

#: What the line behind a window takes at most.
_FOOTER: Final = 160
_FEWEST: Final = 16


def read_tool(store: Store, budget: int) -> ToolDefinition:
    """The tool for a store; what it gives is never more than ``budget`` bytes, so that it is not cut itself."""
    from dsh_runtime import define_tool

    most = budget - _FOOTER

    def execute(args: Any) -> dict[str, Any]:
        limit = max(_FEWEST, min(args.get("limit", most), most))
        return _value(store.read(args["locator"], max(0, args.get("offset", 0)), limit))

    return define_tool(
        name="spill_read",
        description="Read a part of a large result that was left out, by the locator (spill:…) in its place.",
        parameters={
            "locator": {"type": "string", "required": True, "description": "As it stands in the result."},
            "offset": {"type": "integer", "description": "The byte to begin at; 0 if it is not given."},
            "limit": {"type": "integer", "description": f"At most so many bytes; {most} at the most."},
        },
        output=_OUTPUT,
        execute=execute,
        render=_render,
        is_concurrency_safe=lambda args: True,
        idempotent=True,
    )


_OUTPUT: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "offset": {"type": "integer", "required": True},
        "text": {"type": "string", "required": True},
        "next_offset": {"type": "integer", "required": True},
        "total": {"type": "integer", "required": True},
    },
}


def _value(window: Window) -> dict[str, Any]:
    return {"offset": window.offset, "text": window.text, "next_offset": window.end, "total": window.total}


def _render(args: Any, value: Any) -> Content:
    end, total = value["next_offset"], value["total"]
    more = f"; go on at offset {end}" if end < total else ""
    return [{"type": "text", "text": f"{value['text']}\n[bytes {value['offset']} to {end} of {total}{more}]"}]
