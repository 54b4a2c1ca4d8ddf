"""What a host with many tools costs: registering them, and finding one among them."""

from __future__ import annotations

import argparse
import statistics
from time import process_time
from typing import Any

import trio
from harness import Figure, main

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host

MANY = 10_000


async def echo(args: Any, exec: Any) -> str:
    return str(args["name"])


def definition(number: int) -> Any:
    return define_tool(
        name=f"tool-{number}",
        description="Echo",
        parameters={"name": {"type": "string", "required": True}},
        output={"type": "string"},
        execute=echo,
    )


class Registry:
    """A host with so many tools: what it took to define and to register each, and to find one."""

    def __init__(self, ctx: Any, count: int) -> None:
        self.tools = ctx.tools
        start = process_time()
        definitions = [definition(number) for number in range(count)]
        defined = process_time()
        for each in definitions:
            self.tools.register(each)
        self.define = (defined - start) / count * 1e6
        self.register = (process_time() - defined) / count * 1e6
        step = max(1, count // 10)
        self._names = [f"tool-{number}" for number in range(0, count, step)]

    def look_up(self) -> float:
        """Microseconds to find a tool by its name."""
        get, names = self.tools.get, self._names * 1000
        start = process_time()
        for name in names:
            get(name)
        return (process_time() - start) / len(names) * 1e6

    async def call(self) -> float:
        """Microseconds of a call."""
        execute, signal = self.tools.execute, AbortController().signal
        names = self._names * 50
        start = process_time()
        for name in names:
            await execute(ToolExecutionInput("1", name, {"name": "Ada"}, signal))
        return (process_time() - start) / len(names) * 1e6


async def one_round() -> dict[str, float]:
    async with open_host() as few_host, open_host() as many_host:
        few, many = Registry(few_host.ctx, 10), Registry(many_host.ctx, MANY)
        for registry in (few, many):
            registry.look_up()
            await registry.call()
        looks = [(many.look_up(), few.look_up()) for _ in range(5)]
        calls = [(await many.call(), await few.call()) for _ in range(5)]
        return {
            "define": many.define,
            "register": many.register,
            "look-up among 10": statistics.median(few for _, few in looks),
            f"look-up among {MANY:,}": statistics.median(many for many, _ in looks),
            "look-up": statistics.median(many / few for many, few in looks),
            "call": statistics.median(many / few for many, few in calls),
        }


def measure(options: argparse.Namespace) -> list[Figure]:
    rounds = [trio.run(one_round) for _ in range(options.rounds)]
    median = {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}
    few, many = "look-up among 10", f"look-up among {MANY:,}"
    return [
        Figure("define_tool, each", median["define"], "us"),
        Figure("registration, each", median["register"], "us", 60),
        Figure(few, median[few], "us"),
        Figure(many, median[many], "us"),
        Figure(f"look-up, among {MANY:,} / among 10", median["look-up"], "x", 1.2),
        Figure(f"call, among {MANY:,} / among 10", median["call"], "x"),
    ]


if __name__ == "__main__":
    main("many tools", measure, rounds=5)
