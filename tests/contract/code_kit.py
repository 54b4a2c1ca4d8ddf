"""A code runtime in the test's own process and loop, and programs run by way of ``run_code``.

The runtime is a second one behind the interface of the first: it confines nothing, and lets tests drive a program by
events of trio. A program finds ``tools``, ``ToolCallError``, ``print``, ``gather``, ``start`` (a call that nobody
waits for), and what the test gives it.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from dsh_runtime import (
    AbortController,
    AbortSignal,
    CodeFailure,
    CodeOutcome,
    CodeProgram,
    Service,
    ToolExecutionInput,
    open_host,
)


class ToolCallError(Exception):
    """A sub-call that failed."""

    def __init__(self, message: str, name: str | None, code: str | None) -> None:
        super().__init__(message)
        self.message, self.name, self.code = message, name, code


class InProcess(Service):
    """Runs programs in this process, with ``names`` beside what they always find."""

    name = "code_runtime"
    language = "python"

    def __init__(self, **names: Any) -> None:
        self.names = names
        self.programs: list[CodeProgram] = []
        self.runs = 0

    async def run(self, program: CodeProgram) -> CodeOutcome:
        self.programs.append(program)
        printed: list[str] = []
        outcome = CodeOutcome(failure=CodeFailure("aborted", "the run was aborted"))
        async with trio.open_nursery() as calls:
            scope = trio.CancelScope()
            token = trio.lowlevel.current_trio_token()
            undo = program.signal.add_callback(lambda: token.run_sync_soon(scope.cancel))
            tools = _Tools(program, calls)
            names = {"tools": tools, "ToolCallError": ToolCallError, "gather": gather, "trio": trio, **self.names}
            names["start"] = lambda call: calls.start_soon(_quietly, call)
            names["print"] = lambda *words: printed.append(" ".join(map(str, words)) + "\n")
            try:
                with scope:
                    outcome = await _ran(program.code, names)
            finally:
                tools.ended = True
                undo()
                program.bridge.close()
        return CodeOutcome("".join(printed), outcome.result, outcome.has_result, outcome.failure)


async def _ran(code: str, names: dict[str, Any]) -> CodeOutcome:
    try:
        exec(f"async def program():\n{textwrap.indent(code or 'pass', '    ')}", names)
        value = await names["program"]()
    except Exception as error:
        return CodeOutcome(failure=CodeFailure("exception", f"{type(error).__name__}: {error}", "Traceback of it"))
    return CodeOutcome(result=value, has_result=value is not None)


async def _quietly(call: Awaitable[Any]) -> None:
    with contextlib.suppress(ToolCallError):
        await call


class _Tools:
    """What a program finds under ``tools``. A sub-call has a task of its own, as the interface wants it."""

    def __init__(self, program: CodeProgram, calls: trio.Nursery) -> None:
        self._program = program
        self._calls = calls
        self.ended = False

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        return self[name]

    def __getitem__(self, name: str) -> Callable[..., Awaitable[Any]]:
        def call(arguments: Any = None) -> Awaitable[Any]:
            start = self._program.bridge.enter(name, {} if arguments is None else arguments)
            return self._reply(start)

        return call

    async def _reply(self, start: Callable[[], Awaitable[Any]]) -> Any:
        replies: list[Any] = []
        replied, scope = trio.Event(), trio.CancelScope()

        async def carry() -> None:
            try:
                with scope:
                    replies.append(await start())
            finally:
                replied.set()

        self._calls.start_soon(carry)
        try:
            await replied.wait()
        except trio.Cancelled:
            if not self._program.signal.aborted:
                scope.cancel()  # The program has given up on it.
            raise
        (reply,) = replies
        if reply.error is not None:
            raise ToolCallError(reply.error.message, reply.error.name, reply.error.code)
        return reply.value


async def gather(*calls: Awaitable[Any]) -> list[Any]:
    """Await all at once; the values in their order."""
    values: list[Any] = [None] * len(calls)

    async def one(index: int, call: Awaitable[Any]) -> None:
        values[index] = await call

    async with trio.open_nursery() as nursery:
        for index, call in enumerate(calls):
            nursery.start_soon(one, index, call)
    return values


class Programs:
    """Runs programs on a host."""

    def __init__(self, host: Any, runtime: InProcess | None) -> None:
        self.host = host
        self.ctx = host.ctx
        self.runtime = runtime
        self._count = 0

    async def run(
        self, code: str, *, call_id: str | None = None, signal: AbortSignal | None = None, agent: Any = None
    ) -> Any:
        """Run a program as a call of ``run_code``."""
        self._count += 1
        arguments = {"code": textwrap.dedent(code), "description": "a test"}
        call = ToolExecutionInput(
            call_id or f"run{self._count}", "run_code", arguments, signal or AbortController().signal, agent=agent
        )
        return await self.ctx.tools.execute(call)

    async def result(self, code: str, **more: Any) -> Any:
        """What a program returns, which has to end well."""
        result = await self.run(code, **more)
        assert not result.is_error, result
        return result.value.get("result")


@asynccontextmanager
async def programs(
    settings: dict[str, Any] | None = None,
    *,
    plugins: tuple[Any, ...] = (),
    mode: str = "both",
    log: Path | None = None,
    **names: Any,
) -> AsyncIterator[Programs]:
    """A host whose programs run in this process; with ``log``, it keeps a record there."""
    runtime = InProcess(**names)
    host: dict[str, Any] = {"presentation": mode, "code": {"runtime": "plugin", **(settings or {})}}
    if log is not None:
        host["log"] = {"path": str(log)}
    config = {"host": host}
    async with open_host(config, plugins=(runtime, *plugins)) as host:
        yield Programs(host, runtime)
