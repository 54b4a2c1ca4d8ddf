"""The tool ``run_code``: one program instead of many calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import trio
from dsh_hookspecs import ExecutionToken, GenericCall, ToolRunContext

from dsh_runtime.code_mode.bridge import ToolBridge
from dsh_runtime.code_mode.dispatch_log import DispatchLog
from dsh_runtime.code_mode.interface import CodeOutcome, CodeProgram, CodeRuntime
from dsh_runtime.code_mode.telling import CodeRunError, failure_content, media_note, render, value_of
from dsh_runtime.tools.define import define_tool
from dsh_runtime.tools.definition import ToolDefinition, ToolOutput, ToolReply

if TYPE_CHECKING:
    from dsh_runtime.code_mode.config import CodeModeConfig
    from dsh_runtime.code_mode.people import People
    from dsh_runtime.core.context import Context

NAME: Final = "run_code"
_DESCRIPTION: Final = """\
Run a Python program that calls the tools, and get what it prints and returns.

The code is the body of an async function: call a tool with `await tools.name({"argument": value})` (or \
`tools["odd-name"](...)`), make independent calls at once with `asyncio.gather`, and give back what you need with \
`print(...)` or a top-level `return` of a JSON value; nothing else comes back. A call gives the tool's value, or \
raises `ToolCallError` (with `.message`, `.name` and `.code`) if the tool failed or was not allowed to run. Each \
program starts afresh, with Python's standard library and without network or files of its own."""
_OUTPUT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "logs": {"type": "string", "required": True, "description": "What the program printed."},
        "result": {"type": "json", "description": "What it returned, unless that was None."},
    },
    "additionalProperties": False,
}
_TITLE: Final = 120


class Runner:
    """Runs programs for the ``run_code`` calls of one host."""

    def __init__(self, ctx: Context, people: People, config: CodeModeConfig) -> None:
        self._ctx = ctx
        self._people = people
        self._config = config
        # Where a wrapper runs the body again, the sub-calls of that run have ids of their own.
        self._numbers: WeakKeyDictionary[ExecutionToken, Iterator[int]] = WeakKeyDictionary()

    async def execute(self, args: Any, exec: ToolRunContext) -> Any:
        """The tool's body."""
        runtime: CodeRuntime = self._ctx.code_runtime
        machine = self._ctx.tools.machine
        numbers = self._numbers.setdefault(exec.token, itertools.count(1))
        log = DispatchLog(self._ctx, machine, exec)
        bridge = ToolBridge(self._ctx.tools, exec, log, self._config, numbers)
        with self._people.watching(exec) as stopwatch:
            program = CodeProgram(args["code"], exec.signal, bridge, stopwatch.seconds)
            try:
                outcome = await _to_rest(runtime, program)
            finally:
                bridge.close()  # A runtime that could run nothing at all has not.
        media = [*bridge.media, *media_note(bridge.media_left_out)]
        if outcome.failure is not None:
            raise CodeRunError(outcome.failure, [*failure_content(outcome, outcome.failure), *media])
        value = value_of(outcome)
        return ToolReply(value, [*render(args, value), *media]) if media else value


async def _to_rest(runtime: CodeRuntime, program: CodeProgram) -> CodeOutcome:
    """Run a program until nothing of it is left, whoever is cancelled meanwhile: its signal is what stops it.

    The body has to wait in the task of its call, where a cancellation of the caller's is seen and passed on to the
    signal; the run goes on shielded in a task beside it.
    """
    outcomes: list[CodeOutcome] = []
    ended = trio.Event()

    async def run() -> None:
        try:
            with trio.CancelScope(shield=True):
                outcomes.append(await runtime.run(program))
        finally:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        try:
            await ended.wait()
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await ended.wait()
            # What was printed until then is worth more than the bare news that the call was stopped. If it is the
            # caller who is cancelled, the pipeline sees to it that the cancellation goes on its way.
    return outcomes[0]


def present(args: Any) -> GenericCall:
    """The card of a program: what it is for, and the program as it is."""
    title = " ".join(args["description"].split())[:_TITLE] or "Run a program"
    return GenericCall(title=title, kind="execute", content=[{"type": "text", "text": args["code"]}])


def make_tool(execute: Callable[[Any, Any], Any]) -> ToolDefinition:
    """The definition of ``run_code``."""
    text: Any = {"type": "string", "required": True}
    return define_tool(
        name=NAME,
        description=_DESCRIPTION,
        parameters={
            "code": {**text, "description": "The program: the body of an async Python function."},
            "description": {**text, "description": "In a few words, for people: what the program does."},
        },
        output=ToolOutput(_OUTPUT, render=render),
        execute=execute,
        present_call=present,
    )
