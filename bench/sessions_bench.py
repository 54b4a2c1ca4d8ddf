"""The session log beside bare SQLite: rate, latency, reading, memory, bytes.

Every rate is measured in alternating rounds beside a bare connection that commits the very rows that the log wrote,
in groups of the same size, with the same ``synchronous``. The bare one gets its rows ready made; the log masks
nothing, but makes its JSON and digests as it goes.

    python bench/sessions_bench.py [--calls 20000] [--rounds 5] [--callers 64] [--json FILE]

ends with 1 if a figure misses its goal.
"""

from __future__ import annotations

import argparse
import gc
import json
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

CONTENT = [{"type": "text", "text": "total 24\n" + "drwxr-xr-x 3 user user 4096 Nov 30 02:55 src\n" * 6}]
ARGUMENTS = {"path": "/srv/project/src", "depth": 2, "pattern": "*.py", "follow": False}


async def open_sessions(ctx: Any, path: Path, sync: str) -> Any:
    """Mount the service on a kernel's root."""
    from dsh_runtime.services.sessions import Sessions, SessionsConfig

    fiber = ctx.plugin(Sessions(SessionsConfig(path=str(path), sync=sync)))
    await fiber.wait()
    return ctx.get("sessions")


def execution(number: int, signal: Any) -> Any:
    from dsh_hookspecs import ExecutionToken

    from dsh_runtime.tools.execution import make_execution

    return make_execution(f"call-{number}", "list_files", ARGUMENTS, signal, None, None, None, ExecutionToken())


async def run_calls(sessions: Any, calls: int, callers: int) -> list[float]:
    """Journal so many calls; the seconds that each took, both records together."""
    from dsh_hookspecs import AbortController, ToolExecutionSuccess

    signal, took = AbortController().signal, []
    result = ToolExecutionSuccess(value=None, content=CONTENT)
    numbers = iter(range(calls))

    async def caller() -> None:
        for number in numbers:
            run = execution(number, signal)
            began = perf_counter()
            await sessions.called(run)
            await sessions.finished(run, result, None)
            took.append(perf_counter() - began)

    async with trio.open_nursery() as nursery:
        for _ in range(callers):
            nursery.start_soon(caller)
    return took


async def log_round(folder: Path, sync: str, calls: int, callers: int) -> tuple[float, list[float], float]:
    """Seconds for so many calls through the log, the time of each, and the mean size of a group."""
    from dsh_runtime.core.kernel import open_kernel
    from dsh_runtime.services.sessions.store import Store

    groups: list[int] = []
    commit = Store._commit

    def counted(self: Store, group: Sequence[Any]) -> None:
        groups.append(len(group))
        commit(self, group)

    path = folder / "log.db"
    async with open_kernel() as ctx:
        sessions = await open_sessions(ctx, path, sync)
        Store._commit = counted  # type: ignore[method-assign]
        began = perf_counter()
        took = await run_calls(sessions, calls, callers)
        seconds = perf_counter() - began
        Store._commit = commit  # type: ignore[method-assign]
    return seconds, took, statistics.mean(groups)


def bare_round(folder: Path, sync: str, group: int) -> float:
    """Seconds for bare SQLite to commit the rows of the log again, in groups of the same size."""
    from dsh_runtime.services.sessions.schema import _TABLES, COLUMNS, insert_sql

    source = sqlite3.connect(folder / "log.db")
    rows = source.execute(f"SELECT {COLUMNS} FROM events ORDER BY id").fetchall()
    source.close()
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {sync}")
    for statement in _TABLES:
        db.execute(statement)
    insert = insert_sql(1)
    began = perf_counter()
    for at in range(0, len(rows), group):
        db.execute("BEGIN IMMEDIATE")
        db.executemany(insert, rows[at : at + group])
        db.execute("COMMIT")
    seconds = perf_counter() - began
    db.close()
    return seconds


def compare(sync: str, calls: int, callers: int, rounds: int) -> dict[str, float]:
    """The median ratio of the rates over alternating rounds, with latencies."""
    ratios, rates, medians, tails, sizes = [], [], [], [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            seconds, took, group = trio.run(log_round, folder, sync, calls, callers)
            bare = bare_round(folder, sync, max(1, round(group)))
        took.sort()
        ratios.append(bare / seconds)
        rates.append(calls / seconds)
        medians.append(took[len(took) // 2] * 1e6)
        tails.append(took[int(len(took) * 0.99)] * 1e6)
        sizes.append(group)
    return {
        "ratio": statistics.median(ratios),
        "calls a second": statistics.median(rates),
        "group": statistics.median(sizes),
        "median us": statistics.median(medians),
        "p99 us": statistics.median(tails),
    }


def resident() -> int:
    """Resident bytes of this process."""
    text = Path("/proc/self/statm").read_text()
    return int(text.split()[1]) * 4096


async def growth(folder: Path, calls: int) -> dict[str, float]:
    """Resident memory from a tenth of the calls to all of them, and the bytes that a call takes in the database."""
    from dsh_runtime.core.kernel import open_kernel

    async with open_kernel() as ctx:
        sessions = await open_sessions(ctx, folder / "log.db", "normal")
        await run_calls(sessions, calls // 10, 64)
        gc.collect()
        before = resident()
        await run_calls(sessions, calls - calls // 10, 64)
        gc.collect()
        after = resident()
    size = (folder / "log.db").stat().st_size
    return {"growth MB": (after - before) / 1e6, "bytes a call": size / calls}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--callers", type=int, default=64)
    options = parser.parse_args()
    for sync, callers in (("full", options.callers), ("normal", options.callers), ("full", 1), ("normal", 1)):
        calls = options.calls if callers > 1 else options.calls // 10
        print(sync, callers, json.dumps(compare(sync, calls, callers, options.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
