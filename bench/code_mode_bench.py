"""What a program's calls cost: 50 that wait 20 ms each, side by side, and 100 trivial ones, one after the other.

Wall time, since two processes take turns, and the best of many interleaved rounds, since whatever else runs on the
machine only ever adds to it. Beside the sub-calls of a program stand the same calls made straight through the pipeline.
"""

from __future__ import annotations

import argparse
from math import ceil
from time import perf_counter
from typing import Any

import trio
from harness import Figure, main

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host

NAPS, NAP, POOL = 50, 0.02, 10
TRIVIAL = 100
SUB_CALL_GOAL = 150.0

PROGRAMS = {
    "empty": "pass",
    "sequential": f"""
from time import perf_counter
await tools.echo()
times = [perf_counter()]
for _ in range({TRIVIAL}):
    await tools.echo()
    times.append(perf_counter())
each = sorted(after - before for before, after in zip(times, times[1:]))
return [times[-1] - times[0], each[{TRIVIAL} // 2]]
""",
    "naps": f"import asyncio\nawait asyncio.gather(*(tools.nap() for _ in range({NAPS})))",
}


async def echo(args: Any, exec: Any) -> str:
    return "echo"


async def nap(args: Any, exec: Any) -> str:
    await trio.sleep(NAP)
    return "rested"


def tools() -> list[Any]:
    common: dict[str, Any] = {"description": "", "parameters": {}, "output": {"type": "string"}}
    safe = {"is_concurrency_safe": lambda args: True}
    return [define_tool(name="echo", execute=echo, **common), define_tool(name="nap", execute=nap, **common, **safe)]


async def run_program(ctx: Any, name: str) -> Any:
    arguments = {"code": PROGRAMS[name], "description": "a benchmark"}
    call = ToolExecutionInput(name, "run_code", arguments, AbortController().signal)
    start = perf_counter()
    result = await ctx.tools.execute(call)
    taken = perf_counter() - start
    assert not result.is_error, result
    return result.value.get("result", taken)  # by its own clock, where it says so


async def run_plain(ctx: Any) -> float:
    signal = AbortController().signal
    start = perf_counter()
    for number in range(TRIVIAL):
        await ctx.tools.execute(ToolExecutionInput(f"plain:{number}", "echo", {}, signal))
    return perf_counter() - start


async def all_rounds(rounds: int) -> dict[str, list[Any]]:
    config = {"host": {"presentation": "both", "code": {"max_parallel": POOL}}}
    times: dict[str, list[Any]] = {name: [] for name in (*PROGRAMS, "plain")}
    async with open_host(config) as host:
        ctx: Any = host.ctx
        for tool in tools():
            ctx.tools.register(tool)
        runtime = ctx.get("code_runtime")
        for number in range(-2, rounds):
            for name, taken in times.items():
                await runtime.settle()  # a spare interpreter is ready, and nothing of the last program is left
                seconds = await (run_plain(ctx) if name == "plain" else run_program(ctx, name))
                if number >= 0:
                    taken.append(seconds)
    return times


def measure(options: argparse.Namespace) -> list[Figure]:
    times = trio.run(all_rounds, options.rounds)
    best = {name: min(taken) for name, taken in times.items()}
    ideal = ceil(NAPS / POOL) * NAP
    sub_call = best["sequential"][0] / TRIVIAL * 1e6
    median = min(found for _, found in times["sequential"]) * 1e6
    plain = best["plain"] / TRIVIAL * 1e6
    return [
        Figure("a program that does nothing", best["empty"] * 1000, "ms"),
        Figure("a plain call", plain, "us"),
        Figure("a sub-call", sub_call, "us"),
        Figure("a sub-call, the median of a program's", median, "us"),
        Figure("a sub-call beyond a plain call", sub_call - plain, "us", SUB_CALL_GOAL),
        Figure(f"{NAPS} naps, ideal", ideal * 1000, "ms"),
        Figure(f"{NAPS} naps in a program", best["naps"] * 1000, "ms"),
        Figure("naps / ideal", best["naps"] / ideal, "x", 1.3),
    ]


if __name__ == "__main__":
    main(f"{TRIVIAL} calls in turn, {NAPS} side by side", measure, rounds=40)
