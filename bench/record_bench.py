"""What the record costs: the notes that nobody keeps, the log with the usual plugins, a round trip over MCP.

"Without durability" is a log whose records are masked and encoded as ever, and dropped where they would be committed:
what is left is what the runtime itself adds. A commit costs what SQLite and the disk cost; ``sessions_bench.py``
compares that with bare SQLite.

    python bench/record_bench.py [--rounds 9] [--json]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import trio
from contenders import greet, ours
from harness import Contender, Figure, Operation, interleaved, main
from mcp_stdio_bench import Client

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host
from dsh_runtime.services.sessions.store import Store
from dsh_runtime.tools.call import Call

PLAIN, UNNOTED, NOTED = "no log", "no log, its code taken out", "notes that nobody keeps"
EVERYTHING, FLYING, PLUGINS = "log and plugins", "log and plugins, no durability", "plugins alone"
CALLERS = 32


def rows(folder: str) -> list[dict[str, Any]]:
    """A gate with a rule that looks at an argument, and the plugins that most hosts have."""
    rule = {"action": "deny", "tools": ["greet"], "arguments": {"name": ["Mallory"]}}
    return [
        {"id": "redact", "use": "redact"},
        {"id": "gate", "use": "permission-gate", "config": {"default": "allow", "rules": [rule]}},
        {"id": "timeout", "use": "timeout"},
        {"id": "spill", "use": "spill", "config": {"folder": f"{folder}/spilled"}},
    ]


@asynccontextmanager
async def opened(*, log: bool, plugins: bool) -> AsyncIterator[Operation]:
    """A host with the tool; the operation is one call of it."""
    tool: Any = define_tool(
        name="greet",
        description="Greet",
        parameters={"name": {"type": "string", "required": True}},
        output={"type": "string"},
        execute=greet,
    )
    with tempfile.TemporaryDirectory() as folder:
        config: dict[str, Any] = {"plugin": rows(folder) if plugins else []}
        if log:
            config["host"] = {"log": {"path": str(Path(folder) / "log.db")}}
        async with open_host(config) as host:
            host.ctx.tools.register(tool)
            tools, signal, agent = host.ctx.tools, AbortController().signal, host.ctx.scope().key

            async def call() -> Any:
                return await tools.execute(ToolExecutionInput("c", "greet", {"name": "Ada"}, signal, agent))

            assert not (await call()).is_error
            yield call


class NoJournal:
    """Keeps nothing."""

    async def called(self, exec: object) -> None:
        """Forget a call."""

    async def finished(self, exec: object, result: object, story: object) -> None:
        """Forget a result."""


@asynccontextmanager
async def flying() -> AsyncIterator[Operation]:
    """The log without its commits."""

    async def append(self: Store, row: object) -> None:
        return None

    async with opened(log=True, plugins=True) as operation:
        with patch.object(Store, "append", append):
            yield operation


@asynccontextmanager
async def unnoted() -> AsyncIterator[Operation]:
    """The pipeline as it would be if it could keep no record."""
    with patch.object(Call, "run", run_without_record):
        async with ours(1).open() as operation:
            yield operation


async def run_without_record(self: Any, lane: Any = None) -> Any:
    """``Call.run`` without a word about the record."""
    machine = self.machine
    if perf_counter() >= machine.yield_at:
        await machine.let_others_run()
    refused = self.enter()
    machine.calls[self.token] = self
    try:
        candidate = await self._stages(lane) if refused is None else refused
        return self._observed(self._final(candidate))
    finally:
        del machine.calls[self.token]
        self.dispatch = None


def calls(rounds: int) -> list[Figure]:
    """One call after the other, in the process's own time."""
    contenders = [
        Contender(PLAIN, ours(1).open),
        Contender(UNNOTED, unnoted),
        Contender(NOTED, ours(1, journal=NoJournal()).open),
        Contender("bare", lambda: opened(log=False, plugins=False)),
        Contender(PLUGINS, lambda: opened(log=False, plugins=True)),
        Contender(FLYING, flying),
        Contender(EVERYTHING, lambda: opened(log=True, plugins=True)),
    ]
    taken = interleaved(contenders, rounds=rounds, count=500)
    return [
        *taken.figures(),
        taken.against(PLAIN, UNNOTED, 1.05),
        Figure(f"{NOTED} / {PLAIN}", taken.ratio(NOTED, PLAIN), "x"),
        taken.against(FLYING, "bare", 2.5),
        Figure(f"{EVERYTHING} / bare", taken.ratio(EVERYTHING, "bare"), "x"),
    ]


def rates(rounds: int) -> list[Figure]:
    """Calls a second by the clock, with so many callers at once: how much a group of commits shares."""
    figures = []
    for name, log in (("bare", False), (EVERYTHING, True)):
        found = [trio.run(_rate, log) for _ in range(rounds)]
        figures.append(Figure(f"{name}, {CALLERS} callers", statistics.median(found), "calls/s"))
    return figures


async def _rate(log: bool, count: int = 100) -> float:
    async with opened(log=log, plugins=log) as operation:

        async def caller() -> None:
            for _ in range(count):
                await operation()

        began = perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(CALLERS):
                nursery.start_soon(caller)
        return CALLERS * count / (perf_counter() - began)


@contextmanager
def clients() -> Iterator[dict[str, Client]]:
    """A client of each server."""
    made = {name: Client(name) for name in ("bare", "logged")}
    try:
        yield made
    finally:
        for client in made.values():
            client.close()


def round_trips(rounds: int) -> list[Figure]:
    """A call over stdio: a host with its log beside a bare server of the SDK."""
    found: dict[str, list[float]] = {"bare": [], "logged": []}
    with clients() as made:
        for _ in range(rounds + 1):
            for name, client in made.items():
                found[name].append(client.round(300))
    times = {name: values[1:] for name, values in found.items()}
    ratio = statistics.median(a / b for a, b in zip(times["logged"], times["bare"], strict=True))
    return [
        *(Figure(f"MCP round trip, {name}", statistics.median(values), "us") for name, values in times.items()),
        Figure("MCP round trip, logged / bare", ratio, "x", 1.3),
    ]


MEASURES: tuple[Callable[[int], list[Figure]], ...] = (calls, rates, round_trips)


def measure(options: argparse.Namespace) -> list[Figure]:
    return [figure for each in MEASURES for figure in each(options.rounds)]


if __name__ == "__main__":
    main("the record", measure, rounds=9)
