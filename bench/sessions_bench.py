"""The session log beside bare SQLite, and beside a bare server of the MCP SDK.

The rate is measured in alternating rounds beside a bare connection that commits the very rows that the log wrote, in
groups of the same size, with the same ``synchronous``. The bare one gets its rows ready made; the log makes its JSON
and digests as it goes, and wakes a task for every record. Time is that of the wall, since both wait for the disk.

    python bench/sessions_bench.py [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import gc
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from itertools import islice, pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import trio
from harness import Figure, main
from mcp_stdio_bench import SERVERS, Client, echo

CALLERS = 64
CALLS = 10_000
CONTENT = [{"type": "text", "text": "total 24\n" + "drwxr-xr-x 3 user user 4096 Nov 30 02:55 src\n" * 6}]
ARGUMENTS = {"path": "/srv/project/src", "depth": 2, "pattern": "*.py", "follow": False}


async def open_sessions(ctx: Any, path: Path, sync: str) -> Any:
    """Mount the service on a kernel's root."""
    from dsh_runtime.services.sessions import Sessions, SessionsConfig

    await ctx.plugin(Sessions(SessionsConfig(path=str(path), sync=sync))).wait()
    return ctx.get("sessions")


async def run_calls(sessions: Any, calls: int, callers: int) -> list[float]:
    """Journal so many calls; the seconds that each took, both records together."""
    from dsh_hookspecs import AbortController, ExecutionToken, ToolExecutionSuccess

    from dsh_runtime.tools.execution import make_execution

    signal, took = AbortController().signal, []
    result = ToolExecutionSuccess(value=None, content=CONTENT)
    numbers = iter(range(calls))

    async def caller() -> None:
        for number in numbers:
            run = make_execution(f"call-{number}", "list_files", ARGUMENTS, signal, None, None, None, ExecutionToken())
            began = perf_counter()
            await sessions._journal.called(run)
            await sessions._journal.finished(run, result, None)
            took.append(perf_counter() - began)

    async with trio.open_nursery() as nursery:
        for _ in range(callers):
            nursery.start_soon(caller)
    return took


# The rate, and how long a call waits.


async def log_round(path: Path, sync: str, calls: int, callers: int) -> tuple[float, list[float], float]:
    """Seconds for so many calls through the log, those of each, and the mean size of a group."""
    from dsh_runtime.core.kernel import open_kernel

    async with open_kernel() as ctx:
        sessions = await open_sessions(ctx, path, sync)
        before, began = sessions._store.commits, perf_counter()
        took = await run_calls(sessions, calls, callers)
        seconds = perf_counter() - began
        return seconds, took, 2 * calls / (sessions._store.commits - before)


def bare_round(source: Path, path: Path, sync: str, group: int) -> float:
    """Seconds a call for bare SQLite to commit the rows of a log again, in groups of one size."""
    from dsh_runtime.services.sessions.schema import _TABLES, COLUMNS, insert_sql

    log = sqlite3.connect(source)
    rows = log.execute(f"SELECT {COLUMNS} FROM events ORDER BY id").fetchall()
    log.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {sync}")
    for statement in _TABLES:
        db.execute(statement)
    began = perf_counter()
    for at in range(0, len(rows), group):
        db.execute("BEGIN IMMEDIATE")
        db.executemany(insert_sql(1), rows[at : at + group])
        db.execute("COMMIT")
    seconds = perf_counter() - began
    db.close()
    return seconds


def rates(sync: str, callers: int, calls: int, rounds: int) -> list[Figure]:
    """The log's rate in units of bare SQLite's, and its latencies."""
    ratios, speeds, medians, tails, groups = [], [], [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "log.db"
            seconds, took, group = trio.run(log_round, path, sync, calls, callers)
            bare = bare_round(path, Path(name) / "bare.db", sync, max(1, round(group)))
        took.sort()
        ratios.append(bare / seconds)
        speeds.append(calls / seconds)
        medians.append(took[len(took) // 2] * 1e6)
        tails.append(took[int(len(took) * 0.99)] / took[len(took) // 2])
        groups.append(group)
    goal = 0.5 if (sync, callers) == ("full", CALLERS) else None
    what = f"sync = {sync}, {callers} callers"
    return [
        Figure(f"{what}: rate / bare SQLite", statistics.median(ratios), "x", goal, at_least=True),
        Figure(f"{what}: rate", statistics.median(speeds), "calls/s"),
        Figure(f"{what}: records in a group", statistics.median(groups), ""),
        Figure(f"{what}: a call, median", statistics.median(medians), "us"),
        Figure(f"{what}: p99 / median", statistics.median(tails), "x", 10 if goal else None),
    ]


# The round trip over stdio.


async def serve_logged() -> None:
    """A host with the MCP front door and the log at its default."""
    import dsh_plugin_mcp_server

    from dsh_runtime import define_tool, open_host
    from dsh_runtime.services.sessions import Sessions, SessionsConfig

    class Echo:
        name = "echo"
        inject = ("tools",)

        def apply(self, ctx: Any) -> None:
            text = {"text": {"type": "string", "required": True}}
            output = {"type": "object", "additionalProperties": False, "properties": text}
            ctx.tools.register(
                define_tool(name="echo", description="Echo", parameters=text, output=output, execute=echo)
            )

    with tempfile.TemporaryDirectory() as folder:
        log = Sessions(SessionsConfig(path=f"{folder}/log.db"))
        async with open_host(plugins=[log, dsh_plugin_mcp_server, Echo()]) as host:
            await host.ctx.get("mcp_server").serve_stdio()


class Caller(Client):
    """A client of one of the servers of this file, or of ``mcp_stdio_bench``."""

    def __init__(self, server: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", server], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.asked = 0
        self.ask(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
        )
        self.send({"method": "notifications/initialized"})


def round_trips(rounds: int, calls: int) -> list[Figure]:
    """A call over stdio, with the log and bare."""
    clients = {name: Caller(name) for name in ("bare", "host", "logged")}
    times: dict[str, list[float]] = {name: [] for name in clients}
    for _ in range(rounds):
        for name, client in clients.items():
            times[name].append(client.round(calls))
    for client in clients.values():
        client.close()
    ratio = statistics.median(a / b for a, b in zip(times["logged"], times["bare"], strict=True))
    figures = [Figure(f"stdio round trip, {name}", statistics.median(each), "us") for name, each in times.items()]
    return [*figures, Figure("stdio round trip, logged / bare", ratio, "x", 1.3)]


# Reading, memory, bytes.


async def fill(path: Path, calls: int) -> float:
    """Journal so many calls; the growth in MB of resident memory over the last nine tenths of them."""
    from dsh_runtime.core.kernel import open_kernel

    async with open_kernel() as ctx:
        sessions = await open_sessions(ctx, path, "normal")
        sizes = []
        for part in (calls // 10, calls - calls // 10):
            await run_calls(sessions, part, CALLERS)
            gc.collect()
            sizes.append(resident())
        return (sizes[1] - sizes[0]) / 1e6


def resident() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096


def read_all(path: Path, events: int) -> float:
    """Seconds to read so many events of a session as typed values."""
    from dsh_runtime.services.sessions.reading import Reader

    with Reader(path) as reader:
        [session] = reader.sessions()
        began = perf_counter()
        found = islice(reader.events(session=session.id), events)
        numbers = [each.event and each.seq for each in found]
        seconds = perf_counter() - began
    assert len(numbers) == events and all(a < b for a, b in pairwise(numbers))
    return seconds


def holdings(calls: int) -> list[Figure]:
    """What a large log costs: memory while it is written, bytes on the disk, time to read."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "log.db"
        growth = trio.run(fill, path, calls)
        size = path.stat().st_size / calls
        seconds = read_all(path, min(100_000, calls))
    return [
        Figure(f"memory, call {calls // 10:,} to {calls:,}", growth, "MB more", 5),
        Figure("in the database", size, "bytes a call"),
        Figure("reading 100,000 events of a session", seconds, "s", 1),
    ]


def measure(options: argparse.Namespace) -> list[Figure]:
    """All figures."""
    return [
        *rates("full", CALLERS, CALLS, options.rounds),
        *rates("normal", CALLERS, CALLS, options.rounds),
        *rates("full", 1, CALLS // 10, options.rounds),
        *rates("normal", 1, CALLS // 10, options.rounds),
        *round_trips(options.rounds, 400),
        *holdings(100_000),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        trio.run({**SERVERS, "logged": serve_logged}[sys.argv[2]])
    else:
        main("the session log", measure, rounds=5)
