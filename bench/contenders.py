"""The contenders of the call benchmarks: a bare await with what any runtime needs, this host, and the peers.

Every one runs the same trivial tool, ``Hello, `` and a name, with arguments and result validated.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import fastjsonschema
import trio
from harness import Contender, Operation

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
OUTPUT: dict[str, Any] = {"type": "string"}


async def greet(args: Any, exec: Any) -> str:
    """The tool."""
    return "Hello, " + args["name"]


# F1 and F2: what the same safety costs with nothing around it.


class FrozenDict(dict[str, Any]):
    """A dict that refuses assignment."""

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("frozen")


class FrozenList(list[Any]):
    """A list that refuses assignment."""

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("frozen")


def freeze(value: Any) -> Any:
    if type(value) is dict:
        return FrozenDict({key: freeze(item) for key, item in value.items()})
    if type(value) is list:
        return FrozenList([freeze(item) for item in value])
    return value


def f1() -> Contender:
    """F1: json in and out, fastjsonschema on arguments and result, a bare await."""
    check_arguments = fastjsonschema.compile(PARAMETERS, use_default=False)
    check_result = fastjsonschema.compile(OUTPUT, use_default=False)

    async def call() -> Any:
        arguments = json.loads(json.dumps({"name": "Ada"}))
        check_arguments(arguments)
        result = json.loads(json.dumps(await greet(arguments, None)))
        check_result(result)
        return result

    @asynccontextmanager
    async def opened() -> AsyncIterator[Operation]:
        yield call

    return Contender("F1", opened)


def f2() -> Contender:
    """F2: F1, and freezing, a deadline's scope around the body, a checkpoint."""
    check_arguments = fastjsonschema.compile(PARAMETERS, use_default=False)
    check_result = fastjsonschema.compile(OUTPUT, use_default=False)

    async def call() -> Any:
        arguments = json.loads(json.dumps({"name": "Ada"}))
        check_arguments(arguments)
        arguments = freeze(arguments)
        with trio.CancelScope(deadline=trio.current_time() + 30):
            result = await greet(arguments, None)
        await trio.lowlevel.checkpoint()
        result = json.loads(json.dumps(result))
        check_result(result)
        return freeze(result)

    @asynccontextmanager
    async def opened() -> AsyncIterator[Operation]:
        yield call

    return Contender("F2", opened)


# This host.


async def pre_execute(exec: Any, next: Callable[[], Any]) -> Any:
    return await next()


def guard(exec: Any) -> None:
    return None


async def around(exec: Any, next: Callable[[], Any]) -> Any:
    return await next()


async def post_execute(exec: Any, result: Any, next: Callable[[], Any]) -> Any:
    return await next()


def observe(exec: Any, result: Any) -> None:
    return None


def last_word(exec: Any, result: Any) -> None:
    return None


def ours(listeners: int, *, finalize: bool = False, journal: Any = None) -> Contender:
    """A host with so many listeners on each stage: async where the event allows it, a guard, a sync observer.

    With a journal, calls are on record there.
    """
    tool: Any = define_tool(
        name="greet",
        description="Greet",
        parameters={"name": {"type": "string", "required": True}},
        output={"type": "string"},
        execute=greet,
        finalize_content=last_word if finalize else None,
    )

    @asynccontextmanager
    async def opened() -> AsyncIterator[Operation]:
        async with open_host() as host:
            ctx: Any = host.ctx
            ctx.tools.register(tool)
            for _ in range(listeners):
                ctx.on("tools/pre-execute", pre_execute)
                ctx.tools.guard(guard)
                ctx.on("tools/execute", around)
                ctx.on("tools/post-execute", post_execute)
                ctx.on("tools/result", observe)
            if journal is not None:
                ctx.tools.keep_record(journal)
            execute, signal = ctx.tools.execute, AbortController().signal
            yield lambda: execute(ToolExecutionInput("1", "greet", {"name": "Ada"}, signal))

    return Contender(f"ours, {listeners} a stage" + (" + finalize_content" if finalize else ""), opened)


# The peers.


@asynccontextmanager
async def _mcp() -> AsyncIterator[Operation]:
    from mcp.server.mcpserver import Context, MCPServer

    server = MCPServer("bench", log_level="ERROR")

    @server.tool()
    async def greet(name: str) -> str:
        return "Hello, " + name

    # One context for all calls; without one, call_tool makes one each time.
    context: Any = Context(mcp_server=server)
    yield lambda: server.call_tool("greet", {"name": "Ada"}, context)


@asynccontextmanager
async def _fastmcp() -> AsyncIterator[Operation]:
    from fastmcp import FastMCP
    from fastmcp.server.middleware import Middleware

    class PassOn(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            return await call_next(context)

    server: Any = FastMCP("bench", middleware=[PassOn()])

    @server.tool
    async def greet(name: str) -> str:
        return "Hello, " + name

    yield lambda: server.call_tool("greet", {"name": "Ada"})


@asynccontextmanager
async def _pydantic_ai() -> AsyncIterator[Operation]:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models.test import TestModel
    from pydantic_ai.tool_manager import ToolManager
    from pydantic_ai.usage import RunUsage

    tools: Any = FunctionToolset()

    @tools.tool_plain
    async def greet(name: str) -> str:
        return "Hello, " + name

    context: Any = RunContext(deps=None, model=TestModel(), usage=RunUsage(), run_step=1)
    manager = await ToolManager(tools).for_run_step(context)
    part = ToolCallPart(tool_name="greet", args={"name": "Ada"}, tool_call_id="1")
    yield lambda: manager.handle_call(part)


@asynccontextmanager
async def _langchain() -> AsyncIterator[Operation]:
    from langchain_core.tools import tool

    @tool
    async def greet(name: str) -> str:
        """Greet."""
        return "Hello, " + name

    yield lambda: greet.ainvoke({"name": "Ada"})


#: Peers by name: the module to look for, how to open one, and under which loop.
PEERS: dict[str, tuple[str, Any, str]] = {
    "mcp direct": ("mcp", _mcp, "trio"),
    "fastmcp, 1 middleware": ("fastmcp", _fastmcp, "asyncio"),
    "pydantic-ai": ("pydantic_ai", _pydantic_ai, "asyncio"),
    "langchain-core": ("langchain_core", _langchain, "asyncio"),
}


def peers(absent: set[str]) -> list[Contender]:
    logging.disable(logging.INFO)
    return [Contender(name, opened, loop) for name, (_, opened, loop) in PEERS.items() if name not in absent]
