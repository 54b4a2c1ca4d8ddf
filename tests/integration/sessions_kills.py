"""Kills hosts under load at seeded instants and looks at the log that they leave.

    python sessions_kills.py LOG SEED KILLS

Each victim is a fork that journals calls in several tasks and says through a pipe which calls it has answered. The
parent kills it at an instant drawn from the seed: while it opens the log, or some microseconds after some answer. Then
the log is opened, as the next host would, and looked through. Prints what was seen as JSON; the first broken promise
ends it with a message.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import trio
from dsh_hookspecs import AbortController, ExecutionToken, ToolExecutionSuccess

from dsh_runtime.core.kernel import open_kernel
from dsh_runtime.services.sessions import Sessions, SessionsConfig
from dsh_runtime.services.sessions.log import end_owner, open_log
from dsh_runtime.tools.execution import make_execution

CALLERS = 6


async def serve(path: Path, sync: Any, prefix: str, answers: int) -> None:
    """Journal calls without end, each answered through the pipe once its result is committed."""
    async with open_kernel() as ctx:
        await ctx.plugin(Sessions(SessionsConfig(path=str(path), sync=sync))).wait()
        sessions = ctx.get("sessions")
        await sessions._store.run(lambda db: db.execute("PRAGMA wal_autocheckpoint = 20").fetchone())
        async with trio.open_nursery() as nursery:
            for caller in range(CALLERS):
                nursery.start_soon(call_on, sessions, f"{prefix}-{caller}", answers)


async def call_on(sessions: Any, prefix: str, answers: int) -> None:
    source = AbortController().signal
    for number in range(1_000_000):
        arguments = {"text": "x" * (number * 997 % 3_000)}
        name = f"{prefix}-{number}"
        run = make_execution(name, "echo", arguments, source, None, None, None, ExecutionToken())
        await sessions.called(run)
        text = "y" * (number * 7_919 % 20_000)
        await sessions.finished(run, ToolExecutionSuccess(None, [{"type": "text", "text": text}]), None)
        os.write(answers, f"{name}\n".encode())


def kill_one(path: Path, draw: random.Random, prefix: str) -> list[str]:
    """Start a victim, kill it at some instant, and give back the calls that it has answered."""
    reading, writing = os.pipe()
    sync = draw.choice(["normal", "full"])
    victim = os.fork()
    if victim == 0:
        os.close(reading)
        try:
            trio.run(serve, path, sync, prefix, writing)
        finally:
            os._exit(1)
    os.close(writing)
    text = b""
    if draw.random() < 0.3:
        time.sleep(draw.uniform(0, 0.04))
    else:
        wanted = draw.randrange(1, 60)
        while text.count(b"\n") < wanted:
            more = os.read(reading, 4_096)
            assert more, "the victim ended by itself"
            text += more
        until = time.perf_counter() + draw.uniform(0, 0.003)
        while time.perf_counter() < until:
            pass
    os.kill(victim, signal.SIGKILL)
    while more := os.read(reading, 65_536):
        text += more
    os.close(reading)
    os.waitpid(victim, 0)
    return text.decode().split("\n")[:-1]


def look(path: Path, answered: list[str], after: int) -> tuple[int, int]:
    """Open the log as the next host would and check what it promises; calls since ``after``, and the last id."""
    now = time.time_ns() // 1_000_000
    log = open_log(path, "normal", now)
    end_owner(log.db, log.owner, now)
    calls = dict(
        log.db.execute(
            "SELECT c.call_id, group_concat(r.outcome) FROM events c LEFT JOIN events r "
            "ON r.session = c.session AND r.call = c.seq AND r.type = 'tool/result' "
            "WHERE c.type = 'tool/call' AND c.id > ? GROUP BY c.call_id",
            (after,),
        ).fetchall()
    )
    lost = [name for name in answered if calls.get(name) != "success"]
    assert not lost, f"answered, but not in the log: {lost}"
    open_ones = [name for name, outcome in calls.items() if outcome not in ("success", "interrupted")]
    assert not open_ones, f"calls without exactly one result: {open_ones}"
    assert log.db.execute("SELECT count(*) FROM sessions WHERE ended IS NULL").fetchone() == (0,)
    assert log.db.execute("SELECT count(*) FROM owners").fetchone() == (0,)
    (last,) = log.db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()
    log.db.close()
    log.lock.release()
    return sum(outcome == "interrupted" for outcome in calls.values()), last


def main() -> None:
    path, seed, kills = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    draw = random.Random(seed)
    answered, interrupted, last = 0, 0, 0
    for number in range(kills):
        names = kill_one(path, draw, f"v{number}")
        try:
            closed, last = look(path, names, last)
        except AssertionError as error:
            sys.exit(f"kill {number} of seed {seed}: {error}")
        answered += len(names)
        interrupted += closed
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    left = [each.name for each in path.parent.iterdir() if "owner" in each.name]
    print(json.dumps({"kills": kills, "answered": answered, "interrupted": interrupted, "left": left}))


if __name__ == "__main__":
    main()
