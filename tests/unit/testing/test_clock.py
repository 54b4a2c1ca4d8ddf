"""Virtual time: it moves when nothing happens, and stands still while a thread works or a test holds it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import trio

from dsh_runtime import ToolDefinition, ToolOutput
from dsh_runtime.testing import VirtualClock, assert_ok, open_trial


class Sleeper:
    """Tools that take their time, in the loop, in a thread, and in the loop on behalf of a thread."""

    name = "sleeper"
    inject = ("tools",)

    def apply(self, ctx: Any) -> None:
        for name in ("doze", "work", "work_and_doze", "work_within"):
            body = getattr(self, name)
            ctx.tools.register(ToolDefinition(name, "…", {"type": "object"}, ToolOutput(schema={}), body))

    async def doze(self, args: Any, exec: Any) -> str:
        await trio.sleep(3600)
        return "rested"

    def work(self, args: Any, exec: Any) -> str:
        time.sleep(0.05)
        return "done"

    def work_and_doze(self, args: Any, exec: Any) -> str:
        trio.from_thread.run(trio.sleep, 3600)
        return "both"

    async def work_within(self, args: Any, exec: Any) -> str:
        limiter = trio.CapacityLimiter(1)

        async def steps() -> AsyncIterator[None]:
            await trio.to_thread.run_sync(time.sleep, 0.05, limiter=limiter)
            yield

        async for _ in steps():
            pass
        return "done"


@pytest.mark.parametrize(("tool", "value"), [("doze", "rested"), ("work_and_doze", "both")])
def test_time_moves_on_when_nothing_happens(tool: str, value: str) -> None:
    async def main() -> float:
        async with open_trial(Sleeper()) as trial:
            assert_ok(await trial.call(tool), value)
            return trio.current_time()

    assert trio.run(main, clock=VirtualClock()) >= 3600


@pytest.mark.parametrize("tool", ["work", "work_within"])
def test_time_waits_for_threads(tool: str) -> None:
    async def main() -> None:
        async with open_trial(Sleeper()) as trial:
            with trio.fail_after(0.01):
                assert_ok(await trial.call(tool), "done")

    trio.run(main, clock=VirtualClock())


@contextmanager
def locked_for_a_while(log: Path) -> Iterator[None]:
    """Keep a log from being written for the first 50 real milliseconds of a ``with``; no task waits for that."""

    def lock() -> None:
        with closing(sqlite3.connect(log, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            locked.set()
            time.sleep(0.05)

    locked, thread = threading.Event(), threading.Thread(target=lock)
    thread.start()
    locked.wait()
    yield
    thread.join()


def test_time_waits_for_the_log() -> None:
    async def main() -> None:
        async with open_trial(Sleeper(), log=True) as trial:
            assert trial.log_path is not None
            with locked_for_a_while(trial.log_path), trio.fail_after(0.01):
                assert_ok(await trial.call("work"), "done")

    trio.run(main, clock=VirtualClock())


async def ends_in_time(holding: AbstractContextManager[None], seconds: str) -> bool:
    """Whether a process of so many real seconds ends before a deadline of virtual ones."""
    async with open_trial():
        with trio.move_on_after(0.01) as limit, holding:
            await trio.run_process(["sleep", seconds])
        return not limit.cancelled_caught


def test_time_stands_still_while_a_test_holds_it() -> None:
    clock = VirtualClock()
    assert trio.run(ends_in_time, clock.hold(), "0.05", clock=clock)
    assert not trio.run(ends_in_time, nullcontext(), "60", clock=VirtualClock())


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan")])
def test_time_makes_no_other_jump_than_forward(seconds: float) -> None:
    clock = VirtualClock()
    with pytest.raises(ValueError, match="finite number of seconds"):
        clock.jump(seconds)


async def test_the_fixture_is_the_clock_of_the_test(virtual_clock: VirtualClock) -> None:
    async with open_trial():
        began = trio.current_time()
        await trio.sleep(86_400)
        assert trio.current_time() - began == 86_400
    assert trio.lowlevel.current_clock() is virtual_clock
