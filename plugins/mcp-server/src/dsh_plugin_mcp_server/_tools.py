"""The host's tools in MCP's form.

Strategy: a schema goes out as its author wrote it. MCP demands ``type: object`` at the root of a parameter schema, and
a client refuses a whole list for one entry that breaks this: a root without a ``type`` is given that one, and a tool
that still does not fit is left out of the list, with a warning. It can be called all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from attrs import frozen
from dsh_hookspecs import ToolsService
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from dsh_plugin_mcp_server._limits import Limits
from dsh_plugin_mcp_server._presentation import RUN_CODE

_log = logging.getLogger(__name__)

PAGE: Final = 1000


@frozen
class ToolList:
    """What one agent sees of the host's tools."""

    tools: ToolsService
    agent: object
    limits: Limits
    #: What the description of ``run_code`` says about the other tools.
    declarations: Callable[[], str] = str

    def page(self, cursor: str | None, *, modern: bool) -> dict[str, Any]:
        """The tools from ``cursor`` on, and where the next page begins if there is one."""
        start = _start(cursor)
        schemas = self.tools.schemas(self.agent)
        page: dict[str, Any] = {"tools": list(self._entries(islice(schemas, start, start + PAGE), modern))}
        if len(schemas) > start + PAGE:
            page["nextCursor"] = str(start + PAGE)
        return page

    def _entries(self, schemas: Iterator[Mapping[str, Any]], modern: bool) -> Iterator[dict[str, Any]]:
        for schema in schemas:
            entry: dict[str, Any] = {}
            try:
                entry = self._entry(schema, modern)
                fault = _fault(entry) or self.limits.excess(entry)
            except (ValueError, TypeError, RecursionError) as error:
                fault = f"cannot be written as JSON ({error})"
            if fault is None:
                yield entry
            else:
                _log.warning("tool %r is not listed for MCP clients: its description %s", schema["name"], fault)

    def _entry(self, schema: Mapping[str, Any], modern: bool) -> dict[str, Any]:
        name = schema["name"]
        description = schema["description"]
        if name == RUN_CODE:
            description = f"{description}\n\n{self.declarations()}".rstrip()
        entry = {"name": name, "description": description, "inputSchema": _rooted(schema["parameters"])}
        definition = self.tools.get(name, self.agent)
        if definition is not None and definition.output.structured:
            output = definition.output
            schema = output.schema if output.relayed is None else output.relayed
            if modern or has_object_root(schema):
                entry["outputSchema"] = schema
        return entry


def has_object_root(schema: Any) -> bool:
    """Whether every value that the schema accepts is an object, as far as the root says."""
    return isinstance(schema, Mapping) and schema.get("type") == "object"


def _start(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise MCPError(INVALID_PARAMS, "Invalid cursor: this server did not hand it out")
    return int(cursor)


def _rooted(schema: Any) -> Any:
    if isinstance(schema, Mapping) and "type" not in schema:
        return {"type": "object", **schema}
    return schema


def _fault(entry: Mapping[str, Any]) -> str | None:
    """What in the description MCP has no room for."""
    if not isinstance(entry["description"], str):
        return "is no text"
    schema = entry["inputSchema"]
    if not has_object_root(schema):
        return "has parameters that are no object"
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not all(isinstance(each, Mapping | bool) for each in properties.values()):
        return "has 'properties' that are no mapping of names to schemas"
    if not isinstance(required, list | tuple) or not all(isinstance(each, str) for each in required):
        return "has a 'required' that is no list of names"
    return None
