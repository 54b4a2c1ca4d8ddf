"""Running a model's batch of calls.

Consecutive parallel calls overlap in a rolling pool; an exclusive call is a barrier. Only dispatch and body overlap:
a lane keeps pre-execute, post-execute and results of overlapping calls in the order of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio
from dsh_hookspecs import ToolExecutionResult

from dsh_runtime.tools.call import Call
from dsh_runtime.tools.definition import ToolExecutionInput

if TYPE_CHECKING:
    from dsh_runtime.tools.runtime import ToolRuntime


class Lane:
    """One call's place in the order of its batch. ``before`` is the lane of the call in front."""

    __slots__ = ("_before", "_slot", "_slots", "finished", "policy")

    def __init__(self, before: Lane | None, slots: trio.Semaphore) -> None:
        self._before = before
        self._slots = slots
        self._slot = True
        self.policy = trio.Event()
        self.finished = trio.Event()

    async def policy_turn(self) -> None:
        """Wait until the call in front has passed its policy."""
        if self._before is not None:
            await _reached(self._before.policy)

    def policy_done(self) -> None:
        """This call has passed its policy."""
        if not self.policy.is_set():
            self.policy.set()

    def body_done(self) -> None:
        """This call's body has come to rest: its place in the pool is free."""
        if self._slot:
            self._slot = False
            self._slots.release()

    async def results_turn(self) -> None:
        """This call's body has come to rest; wait until the call in front has its result."""
        self.policy_done()
        self.body_done()
        if self._before is not None:
            await _reached(self._before.finished)
            self._before = None

    def close(self) -> None:
        """This call is over, however it ended."""
        self.policy_done()
        self.body_done()
        self.finished.set()


async def _reached(event: trio.Event) -> None:
    """Wait for an event; not even a checkpoint where it has happened."""
    if not event.is_set():
        await event.wait()


class Batch:
    """One run of ``execute_batch``."""

    def __init__(self, runtime: ToolRuntime, calls: Sequence[ToolExecutionInput], max_parallel: int) -> None:
        self._runtime = runtime
        self._calls = calls
        self._slots = trio.Semaphore(max_parallel)
        self._results: list[ToolExecutionResult | None] = [None] * len(calls)

    async def run(self) -> list[ToolExecutionResult]:
        """Run all calls; their results in the order of the batch."""
        index = 0
        while index < len(self._calls):
            if self._is_parallel(index):
                index = await self._overlap(index)
            else:
                self._results[index] = await self._runtime.execute(self._calls[index])
                index += 1
        return [result for result in self._results if result is not None]

    async def _overlap(self, index: int) -> int:
        """Start parallel calls from ``index`` on until one is not; wait for them all; give the next index."""
        before: Lane | None = None
        async with trio.open_nursery() as nursery:
            while index < len(self._calls):
                # One start a round of the loop: trio runs the tasks of one round in any order, and out of order they
                # would wait for one another's policy.
                await self._slots.acquire()
                # Read again right before each start: a finished call may have changed what is safe.
                if not self._is_parallel(index):
                    self._slots.release()
                    break
                before = Lane(before, self._slots)
                nursery.start_soon(self._one, index, before)
                index += 1
        return index

    async def _one(self, index: int, lane: Lane) -> None:
        try:
            await lane.policy_turn()
            self._results[index] = await Call(self._runtime.machine, self._calls[index]).run(lane)
        finally:
            lane.close()

    def _is_parallel(self, index: int) -> bool:
        return self._runtime.execution_mode(self._calls[index]) == "parallel"
