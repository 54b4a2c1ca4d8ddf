"""What all benchmarks share: interleaved rounds, medians, and a table that says which goals are met.

Strategy: absolute figures drift with the machine and with what else runs on it. So the contenders of one benchmark take
turns, many short rounds each, in one process; what counts is the median over the rounds of the ratio within a round.
Time is the process's own (``process_time``), unless a benchmark waits on purpose.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from time import process_time
from typing import Any

import trio
from attrs import asdict, frozen

#: One operation, to be awaited again and again.
Operation = Callable[[], Awaitable[object]]


@frozen
class Contender:
    """Something that is measured: ``open()`` makes it ready and gives the operation. ``loop`` is what it runs under."""

    name: str
    open: Callable[[], AbstractAsyncContextManager[Operation]]
    loop: str = "trio"


@frozen
class Figure:
    """One measured number; with a goal (``at most``, or ``at least``) it is met or not."""

    name: str
    value: float
    unit: str
    goal: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


class Rounds:
    """The microseconds per operation of every contender in every round."""

    def __init__(self, times: dict[str, list[float]]) -> None:
        self.times = times

    def median(self, name: str) -> float:
        return statistics.median(self.times[name])

    def least(self, name: str) -> float:
        """The time of the best round: what is left when nobody else gets in the way."""
        return min(self.times[name])

    def ratio(self, name: str, to: str) -> float:
        """How much ``name`` costs in units of ``to``: the median of the ratios within a round."""
        return statistics.median(a / b for a, b in zip(self.times[name], self.times[to], strict=True))

    def figures(self) -> list[Figure]:
        return [Figure(name, self.median(name), "us") for name in self.times]

    def against(self, name: str, to: str, goal: float) -> Figure:
        return Figure(f"{name} / {to}", self.ratio(name, to), "x", goal)


def interleaved(contenders: Sequence[Contender], *, rounds: int, count: int, warm: int = 100) -> Rounds:
    """Let the contenders take turns; every round is ``count`` operations after ``warm`` that do not count."""
    times: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    for number in range(rounds + 1):
        for contender in contenders:
            taken = _run(contender, count, warm)
            if number:  # the first round warms up imports, caches and the interpreter
                times[contender.name].append(taken)
    return Rounds(times)


def _run(contender: Contender, count: int, warm: int) -> float:
    async def measured() -> float:
        async with contender.open() as operation:
            for _ in range(warm):
                await operation()
            gc.collect()
            start = process_time()
            for _ in range(count):
                await operation()
            return (process_time() - start) / count * 1e6

    return trio.run(measured) if contender.loop == "trio" else asyncio.run(measured())


def main(name: str, measure: Callable[[argparse.Namespace], list[Figure]], *, rounds: int = 15) -> None:
    """Run one benchmark as a script: print its table, or its figures as JSON; end with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=f"Measure: {name}.")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"how often each contender runs ({rounds})")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    figures = measure(options)
    if options.json:
        print(json.dumps([as_json(figure) for figure in figures]))
    else:
        print(table(name, figures))
    sys.exit(any(figure.met is False for figure in figures))


def as_json(figure: Figure) -> dict[str, Any]:
    """A figure as plain JSON, with its verdict."""
    return {**asdict(figure), "met": figure.met}


def table(title: str, figures: Sequence[Figure]) -> str:
    """The figures as lines of a table: figure, goal, met or not."""
    width = max([len(title), *(len(figure.name) for figure in figures)]) + 2
    lines = [f"{title:<{width}}{'figure':>12}  {'goal':<16}"]
    for figure in figures:
        value = f"{figure.value:,.2f} {figure.unit}"
        sign = "at least" if figure.at_least else "at most"
        goal = "" if figure.goal is None else f"{sign} {figure.goal:g}"
        verdict = "" if figure.met is None else "met" if figure.met else "NOT MET"
        lines.append(f"{figure.name:<{width}}{value:>12}  {goal:<16}{verdict}".rstrip())
    return "\n".join(lines)


def missing(peers: dict[str, str]) -> set[str]:
    """The peers (name and the module it is imported as) that are not installed; says so."""
    import importlib.util

    absent = {name for name, module in peers.items() if importlib.util.find_spec(module) is None}
    if absent:
        names = ", ".join(sorted(absent))
        print(f"not installed, and so not measured: {names} (pip install -r bench/requirements.txt)", file=sys.stderr)
    return absent
