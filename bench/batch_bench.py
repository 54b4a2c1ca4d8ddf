"""How close ``execute_batch`` comes to the ideal: 1,000 calls that sleep 50 ms, 100 at a time."""

from __future__ import annotations

import argparse
import statistics
from time import perf_counter
from typing import Any

import trio
from harness import Figure, main

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host

CALLS, POOL, SLEEP = 1_000, 100, 0.05
IDEAL = CALLS / POOL * SLEEP


async def nap(args: Any, exec: Any) -> str:
    await trio.sleep(SLEEP)
    return "rested"


async def one_round() -> float:
    tool: Any = define_tool(
        name="nap",
        description="Sleep",
        parameters={},
        output={"type": "string"},
        execute=nap,
        is_concurrency_safe=lambda args: True,
    )
    async with open_host() as host:
        ctx: Any = host.ctx
        ctx.tools.register(tool)
        signal = AbortController().signal
        calls = [ToolExecutionInput(str(number), "nap", {}, signal) for number in range(CALLS)]
        start = perf_counter()
        results = await ctx.tools.execute_batch(calls, max_parallel=POOL)
        taken = perf_counter() - start
    assert [result.is_error for result in results] == [False] * CALLS
    return taken


async def bare_round() -> float:
    """The same sleeps in trio alone: what can be reached on this machine."""
    places = trio.Semaphore(POOL)

    async def one() -> None:
        await trio.sleep(SLEEP)
        places.release()

    start = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(CALLS):
            await places.acquire()
            nursery.start_soon(one)
    return perf_counter() - start


def measure(options: argparse.Namespace) -> list[Figure]:
    pairs = [(trio.run(one_round), trio.run(bare_round)) for _ in range(options.rounds)]
    taken, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
    return [
        Figure("ideal", IDEAL * 1000, "ms"),
        Figure("bare trio", bare * 1000, "ms"),
        Figure("execute_batch", taken * 1000, "ms"),
        Figure("ideal / execute_batch", IDEAL / taken, "x", 0.9, at_least=True),
    ]


if __name__ == "__main__":
    main(f"{CALLS:,} sleeps of {SLEEP * 1000:g} ms, {POOL} at a time", measure, rounds=7)
