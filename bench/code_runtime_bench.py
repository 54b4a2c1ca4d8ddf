"""What it costs to run a program in a process of its own: nothing at all, its sub-calls, large values.

Everything here waits for another process, so it is measured by the clock on the wall; other work on the machine only
ever adds to that, and by a scheduler's whole slices where every processor is busy. So of several rounds, in which the
contenders take turns, the quickest of each counts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import trio
from harness import Figure, main

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host
from dsh_runtime.code_mode.interface import CodeProgram, SubError, SubReply
from dsh_runtime.code_mode.runtime import SubprocessRuntime

CALLS = 100
TURNS = 11
TEN_MB = 10_000_000
#: The peer of a program that does nothing: a worker process that answers lines of JSON.
WORKER = """
import json, sys
for line in sys.stdin:
    sys.stdout.write(json.dumps(json.loads(line)) + "\\n")
    sys.stdout.flush()
"""
SEQUENTIAL = f"""
from time import perf_counter
start = perf_counter()
for number in range({CALLS}):
    await tools.hello({{"name": "Ada"}})
return (perf_counter() - start) / {CALLS} * 1e6
"""
TEXT = f"value = 'x' * {TEN_MB}"
ROWS = "value = [{'id': n, 'name': f'name {n}', 'tags': ['a', 'b'], 'score': n / 7} for n in range(130_000)]"
CROSSING = """
from time import perf_counter
start = perf_counter()
await tools.put(value)
put = perf_counter() - start
start = perf_counter()
await tools.get({})
return [put, perf_counter() - start]
"""
SIGNAL = AbortController().signal


class Pipeline:
    """The shortest way from a program to the pipeline."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx
        self._count = 0

    def enter(self, name: str, arguments: Any) -> Callable[[], Awaitable[SubReply]]:
        self._count += 1
        call = ToolExecutionInput(f"c{self._count}", name, arguments, SIGNAL)

        async def go() -> SubReply:
            result = await self._ctx.tools.execute(call)
            return SubReply(error=SubError(result.error.message)) if result.is_error else SubReply(result.value)

        return go

    def close(self) -> None:
        pass


class Keeper:
    """Keeps a value for the program that gave it."""

    def __init__(self) -> None:
        self._value: Any = None

    def enter(self, name: str, arguments: Any) -> Callable[[], Awaitable[SubReply]]:
        async def go() -> SubReply:
            if name == "put":
                self._value = arguments
            return SubReply(self._value if name == "get" else None)

        return go

    def close(self) -> None:
        pass


async def hello(args: Any, exec: Any) -> str:
    return f"Hello, {args['name']}!"


async def timed(operation: Callable[[], Awaitable[Any]]) -> float:
    start = perf_counter()
    await operation()
    return perf_counter() - start


async def round_trip(process: trio.Process) -> None:
    stdin: Any = process.stdin
    stdout: Any = process.stdout
    await stdin.send_all(b'{"run": ""}\n')
    json.loads(await stdout.receive_some(65_536))


async def nothing(service: SubprocessRuntime, rounds: int) -> list[Figure]:
    worker = await trio.lowlevel.open_process(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    program = CodeProgram("", SIGNAL, Keeper())
    trips, runs = [], []
    try:
        for _ in range(rounds):
            pairs = [await trip_and_run(service, worker, program) for _ in range(TURNS)]
            for times, found in zip((trips, runs), zip(*pairs, strict=True), strict=True):
                times.append(statistics.median(found) * 1e6)
    finally:
        worker.kill()
        await worker.wait()
    return [
        Figure("a worker and back (best round)", min(trips), "us"),
        Figure("a program that does nothing (best round)", min(runs), "us"),
        Figure("nothing / a worker and back", min(runs) / min(trips), "x", 5),
    ]


async def trip_and_run(service: SubprocessRuntime, worker: trio.Process, program: CodeProgram) -> tuple[float, float]:
    await service.settle()
    await trio.sleep(0.001)  # what has been started is at rest, too
    trip = await timed(lambda: round_trip(worker))
    return trip, await timed(lambda: service.run(program))


async def sub_calls(ctx: Any, service: SubprocessRuntime, rounds: int) -> list[Figure]:
    tool: Any = define_tool(
        name="hello",
        description="Say hello",
        parameters={"name": {"type": "string", "required": True}},
        output={"type": "string"},
        execute=hello,
    )
    ctx.tools.register(tool)
    plain, sub = [], []
    for _ in range(rounds):
        await service.settle()
        pipeline = Pipeline(ctx)
        start = perf_counter()
        for _ in range(CALLS):
            await pipeline.enter("hello", {"name": "Ada"})()
        plain.append((perf_counter() - start) / CALLS * 1e6)
        outcome: Any = await service.run(CodeProgram(SEQUENTIAL, SIGNAL, Pipeline(ctx)))
        sub.append(outcome.result)
    return [
        Figure("a call in the host (best round)", min(plain), "us"),
        Figure("a sub-call (best round)", min(sub), "us"),
        Figure("a sub-call over a call in the host", min(sub) - min(plain), "us", 150),
    ]


async def large(service: SubprocessRuntime, rounds: int) -> list[Figure]:
    figures = []
    for name, code in (("text", TEXT), ("rows", ROWS)):
        pairs = []
        for _ in range(max(3, rounds // 3)):
            await service.settle()
            outcome: Any = await service.run(CodeProgram(f"{code}\n{CROSSING}", SIGNAL, Keeper()))
            pairs.append(outcome.result)
        for direction, times in zip(("out", "in"), zip(*pairs, strict=True), strict=True):
            figures.append(Figure(f"10 MB of {name}, {direction} (best round)", min(times) * 1e3, "ms", 1_000))
    return figures


async def measured(rounds: int) -> list[Figure]:
    service = SubprocessRuntime()
    async with open_host(plugins=[service]) as host:
        figures = await nothing(service, rounds)
        figures += await sub_calls(host.ctx, service, rounds)
        return figures + await large(service, rounds)


def measure(options: argparse.Namespace) -> list[Figure]:
    return trio.run(measured, options.rounds)


if __name__ == "__main__":
    main("programs in processes of their own", measure)
