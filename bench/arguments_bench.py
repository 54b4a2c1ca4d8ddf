"""What large arguments cost: 10 KB beside the MCP SDK's direct call, and how the cost grows up to 1 MB."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from attrs import frozen
from harness import Contender, Figure, Operation, interleaved, main, missing

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host

TEXT: dict[str, Any] = {"type": "string"}
ROW: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "required": True},
        "name": {"type": "string", "required": True},
        "ok": {"type": "boolean"},
        "score": {"type": "number"},
        "tags": {"type": "array", "items": TEXT},
    },
}
SIZES = {"10 KB": 125, "100 KB": 1_200, "1 MB": 11_500}


def rows(count: int) -> list[Any]:
    return [{"id": i, "name": f"row {i}", "ok": True, "score": i / 3, "tags": ["a", "b"]} for i in range(count)]


def lines(count: int) -> list[Any]:
    return [f"line {number} of a file that has a good many of them" for number in range(count)]


@frozen
class Shape:
    """Arguments of one shape: the items, their node in the author's DSL, and their type for the SDK."""

    name: str
    items: list[Any]
    node: dict[str, Any]
    annotation: Callable[[], Any]


def row_model() -> Any:
    from pydantic import BaseModel, ConfigDict

    class Row(BaseModel):
        model_config = ConfigDict(extra="forbid")
        id: int
        name: str
        ok: bool = False
        score: float = 0
        tags: list[str] = []

    return Row


SHAPES = [
    Shape("rows", rows(125), ROW, row_model),
    Shape("open rows", rows(125), {"type": "object", "additionalProperties": True}, lambda: dict[str, Any]),
    Shape("lines", lines(190), TEXT, lambda: str),
]


async def count_items(args: Any, exec: Any) -> int:
    return len(args["items"])


def ours(name: str, node: dict[str, Any], items: list[Any]) -> Contender:
    """A host without listeners, as the SDK's server has none."""
    parameters = {"items": {"type": "array", "items": node, "required": True}}
    tool: Any = define_tool(
        name="count", description="Count", parameters=parameters, output={"type": "integer"}, execute=count_items
    )

    @asynccontextmanager
    async def opened() -> AsyncIterator[Operation]:
        async with open_host() as host:
            ctx: Any = host.ctx
            ctx.tools.register(tool)
            execute, signal = ctx.tools.execute, AbortController().signal
            yield lambda: execute(ToolExecutionInput("1", "count", {"items": items}, signal))

    return Contender(f"ours, {name}", opened)


def mcp(shape: Shape) -> Contender:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Operation]:
        from mcp.server.mcpserver import Context, MCPServer

        async def count(items: Any) -> int:
            return len(items)

        count.__annotations__ = {"items": list[shape.annotation()], "return": int}  # type: ignore[misc]
        server = MCPServer("bench", log_level="ERROR")
        server.add_tool(count)
        context: Any = Context(mcp_server=server)
        yield lambda: server.call_tool("count", {"items": shape.items}, context)

    return Contender(f"mcp direct, {shape.name}", opened)


def beside_the_sdk(rounds: int) -> list[Figure]:
    """10 KB of each shape."""
    contenders = [ours(shape.name, shape.node, shape.items) for shape in SHAPES]
    absent = missing({"mcp direct": "mcp"})
    if not absent:
        contenders += [mcp(shape) for shape in SHAPES]
    measured = interleaved(contenders, rounds=rounds, count=100)
    figures = measured.figures()
    if not absent:
        figures += [measured.against(f"ours, {shape.name}", f"mcp direct, {shape.name}", 2.2) for shape in SHAPES]
    return figures


def growth(rounds: int) -> list[Figure]:
    """What a kilobyte of checked rows costs at each size: linear, if it costs the same at all of them."""
    items = {size: rows(count) for size, count in SIZES.items()}
    contenders = [ours(size, ROW, items[size]) for size in SIZES]
    measured = interleaved(contenders, rounds=rounds, count=10, warm=3)
    each = {size: measured.least(f"ours, {size}") / (len(json.dumps(items[size])) / 1000) for size in SIZES}
    figures = [Figure(f"ours, {size}, each KB (best round)", cost, "us") for size, cost in each.items()]
    return [*figures, Figure("cost of a KB, 1 MB / 10 KB", each["1 MB"] / each["10 KB"], "x", 1.25)]


def measure(options: argparse.Namespace) -> list[Figure]:
    # Growth first: what the SDK's modules leave in memory would make the garbage collector's full rounds dearer.
    return [*growth(options.rounds), *beside_the_sdk(options.rounds)]


if __name__ == "__main__":
    main("large arguments", measure)
