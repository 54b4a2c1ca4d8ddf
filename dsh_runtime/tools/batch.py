"""Running several calls: a model's batch, or the sub-calls of a program as they come.

Consecutive parallel calls overlap in a rolling pool; an exclusive call is a barrier. Only dispatch and body overlap:
a lane keeps pre-execute, post-execute and results of overlapping calls in the order in which they came.
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
    """One overlapping call's place in the order of a line. ``before`` is the lane of the call in front."""

    __slots__ = ("_before", "_line", "_slot", "finished", "policy")

    def __init__(self, line: Line, before: Lane | None) -> None:
        self._line = line
        self._before = before
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
            self._line.slots.release()

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
        self._before = None


async def _reached(event: trio.Event) -> None:
    """Wait for an event; not even a checkpoint where it has happened."""
    if not event.is_set():
        await event.wait()


class Line:
    """Calls in the order in which they come, each started as soon as those in front of it allow it."""

    def __init__(self, runtime: ToolRuntime, max_parallel: int) -> None:
        self._runtime = runtime
        self._last: Lane | None = None
        self._alone = False
        self._running = 0
        self._idle: trio.Event | None = None
        self.slots = trio.Semaphore(max_parallel)

    @property
    def is_idle(self) -> bool:
        """Whether no call is running."""
        return not self._running

    async def enter(self, call: ToolExecutionInput) -> Lane | None:
        """Wait until ``call`` may start, and give its lane, or none if it runs alone; for one call at a time, in order.

        It has to be run, and at once.
        """
        while True:
            if self._alone:
                await self._rest()
            if self._running:
                # A checkpoint: trio runs the tasks of one round in any order, and with several starts in one round
                # the calls would wait for one another's policy.
                await self.slots.acquire()
            else:
                self.slots.acquire_nowait()
            # Read again right before each start: a finished call may have changed what is safe.
            parallel = self._runtime.execution_mode(call) == "parallel"
            if parallel or not self._running:
                break
            self.slots.release()
            await self._rest()
        self._running += 1
        self._alone = not parallel
        self._last = Lane(self, self._last) if parallel else None
        return self._last

    async def run(self, call: ToolExecutionInput, lane: Lane | None) -> ToolExecutionResult:
        """Run a call in the lane that it was given."""
        try:
            if lane is not None:
                await lane.policy_turn()
            return await Call(self._runtime.machine, call).run(lane)
        finally:
            if lane is not None:
                lane.close()
            else:
                self.slots.release()
            self._left()

    def _left(self) -> None:
        self._running -= 1
        if not self._running:
            self._last = None
            self._alone = False
            if self._idle is not None:
                self._idle.set()
                self._idle = None

    async def _rest(self) -> None:
        """Wait until every call that has started is over."""
        if self._running:
            if self._idle is None:
                self._idle = trio.Event()
            await self._idle.wait()


class Batch:
    """One run of ``execute_batch``."""

    def __init__(self, runtime: ToolRuntime, calls: Sequence[ToolExecutionInput], max_parallel: int) -> None:
        self._calls = calls
        self._line = Line(runtime, max_parallel)
        self._results: list[ToolExecutionResult | None] = [None] * len(calls)

    async def run(self) -> list[ToolExecutionResult]:
        """Run all calls; their results in the order of the batch."""
        async with trio.open_nursery() as nursery:
            for index, call in enumerate(self._calls):
                lane = await self._line.enter(call)
                if lane is None:
                    await self._one(index, lane)
                else:
                    nursery.start_soon(self._one, index, lane)
        return [result for result in self._results if result is not None]

    async def _one(self, index: int, lane: Lane | None) -> None:
        self._results[index] = await self._line.run(self._calls[index], lane)
