"""Tools in MCP's form."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from dsh_plugin_mcp_server._limits import Limits
from dsh_plugin_mcp_server._tools import PAGE, ToolList
from mcp.shared.exceptions import MCPError

from dsh_runtime import ToolOutput

OBJECT = {"type": "object"}


class FakeTools:
    """As much of the service as a list needs."""

    def __init__(self, *tools: tuple[str, Any, Any]) -> None:
        self.tools = {name: (parameters, output) for name, parameters, output in tools}

    def schemas(self, scope: object | None = None) -> list[dict[str, Any]]:
        return [
            {"name": name, "description": f"About {name}", "parameters": parameters}
            for name, (parameters, _) in self.tools.items()
        ]

    def get(self, name: str, scope: object | None = None) -> Any:
        output = self.tools[name][1]
        return SimpleNamespace(output=output if isinstance(output, ToolOutput) else ToolOutput(schema=output))


def listed(*tools: tuple[str, Any, Any], modern: bool = False) -> list[dict[str, Any]]:
    page = ToolList(FakeTools(*tools), object(), Limits(2000, 20)).page(None, modern=modern)  # type: ignore[arg-type]
    entries: list[dict[str, Any]] = page["tools"]
    return entries


def test_a_tool_is_listed_with_its_schemas_as_they_were_written() -> None:
    """Order, nulls and unknown keywords included."""
    parameters: dict[str, Any] = {
        "x-first": None,
        "type": "object",
        "$defs": {"b": {"default": None}},
        "properties": {"z": {}},
    }
    (entry,) = listed(("a", parameters, {"title": None, "type": "object"}))
    assert json.dumps(entry) == json.dumps(
        {
            "name": "a",
            "description": "About a",
            "inputSchema": parameters,
            "outputSchema": {"title": None, "type": "object"},
        }
    )


def test_an_output_schema_that_is_no_object_is_listed_since_2026() -> None:
    """Older protocols allow objects alone there."""
    tool = ("a", OBJECT, {"type": "array"})
    assert "outputSchema" not in listed(tool)[0]
    assert listed(tool, modern=True)[0]["outputSchema"] == {"type": "array"}


def test_a_root_without_a_type_is_given_one() -> None:
    """MCP demands it, and arguments are objects anyway."""
    assert listed(("a", {"anyOf": []}, OBJECT))[0]["inputSchema"] == {"type": "object", "anyOf": []}


@pytest.mark.parametrize(
    "parameters",
    [
        True,
        {"type": "string"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": 1}},
        {"type": "object", "required": "a"},
        {"type": "object", "required": [1]},
        {"type": "object", "description": "x" * 3000},
        json.loads('{"type": "object", "properties": {"a": ' + '{"not": ' * 30 + "{}" + "}" * 32),
        {"type": "object", "default": float("nan")},
        {"type": "object", "examples": {1}},
        {"type": "object", "default": {("a", "b"): 1}},
    ],
)
def test_a_tool_that_clients_would_stumble_over_is_left_out(parameters: Any, caplog: pytest.LogCaptureFixture) -> None:
    """One bad schema does not cost a client all the others; the host's log says which."""
    with caplog.at_level(logging.WARNING):
        assert [entry["name"] for entry in listed(("bad", parameters, OBJECT), ("good", OBJECT, OBJECT))] == ["good"]
    assert "'bad'" in caplog.text


@pytest.mark.parametrize("description", [None, 1, b"bytes", {"a set"}])
def test_a_tool_whose_description_is_no_text_is_left_out(
    description: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As one with a bad schema is."""
    tools = FakeTools(("bad", OBJECT, OBJECT), ("good", OBJECT, OBJECT))
    bad, good = tools.schemas()
    monkeypatch.setattr(tools, "schemas", lambda scope: [{**bad, "description": description}, good])
    with caplog.at_level(logging.WARNING):
        page = ToolList(tools, object(), Limits(2000, 20)).page(None, modern=False)  # type: ignore[arg-type]
    assert [entry["name"] for entry in page["tools"]] == ["good"]
    assert "'bad'" in caplog.text


def test_a_long_list_comes_in_pages() -> None:
    """Every tool is on exactly one."""
    tools = FakeTools(*((f"t{n}", OBJECT, OBJECT) for n in range(2 * PAGE + 1)))
    listing = ToolList(tools, object(), Limits(2000, 20))  # type: ignore[arg-type]
    names, cursor = [], None
    while True:
        page = listing.page(cursor, modern=False)
        assert len(page["tools"]) <= PAGE
        names += [entry["name"] for entry in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert names == list(tools.tools)


@pytest.mark.parametrize("cursor", ["", "-1", "x", "9" * 50, "٣"])
def test_a_cursor_that_the_server_did_not_make_is_refused(cursor: str) -> None:
    """As a fault of the client's."""
    with pytest.raises(MCPError, match="cursor"):
        ToolList(FakeTools(), object(), Limits(2000, 20)).page(cursor, modern=False)  # type: ignore[arg-type]


def test_a_foreign_output_schema_is_relayed_in_place_of_the_enforced_one() -> None:
    """It may be of any dialect; a tool whose content says all there is has none."""
    foreign = {"$ref": "#/x", "type": "object"}
    (entry,) = listed(("echo", OBJECT, ToolOutput(schema={}, relayed=foreign)))
    assert entry["outputSchema"] == foreign
    (entry,) = listed(("echo", OBJECT, ToolOutput(schema=OBJECT, structured=False)), modern=True)
    assert "outputSchema" not in entry
