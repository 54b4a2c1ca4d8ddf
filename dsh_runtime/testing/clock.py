"""Virtual time that waits for threads.

trio's own autojump takes a host for idle while a worker thread is busy, and lets its deadlines pass. This clock moves
on only when every task is blocked **and** no worker thread has a job.
"""

from __future__ import annotations

import math
from typing import Final

import trio
from trio.testing import wait_all_tasks_blocked

#: Real seconds of stillness after which the host is taken for idle.
_STILL: Final = 0.002
#: Real seconds, more than any test lasts.
_FOREVER: Final = 1e9


class VirtualClock(trio.abc.Clock):
    """A clock that stands still, and jumps to the next deadline when the host has nothing to do.

    It jumps while :meth:`keep` runs, which the kit's host sees to. Give it to ``trio.run(…, clock=)``, or ask for the
    fixture ``virtual_clock``.
    """

    def __init__(self) -> None:
        self._now = 0.0
        #: While one of their tokens is borrowed, time stands still.
        self.limiters: list[trio.CapacityLimiter] = []

    def start_clock(self) -> None:
        """Nothing starts: time stands still."""

    def current_time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """No real time brings a deadline nearer."""
        return 0.0 if deadline <= self._now else _FOREVER

    def jump(self, seconds: float) -> None:
        """Let so much time pass at once."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._now += seconds

    async def keep(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Move on whenever nothing happens, until cancelled."""
        task_status.started()
        while True:
            await wait_all_tasks_blocked(_STILL)
            if self._threads_busy():
                # The thread's end wakes a task; until then nothing may pass.
                await trio.lowlevel.checkpoint()
                continue
            seconds = trio.lowlevel.current_statistics().seconds_to_next_deadline
            if 0 < seconds < math.inf:
                self.jump(seconds)
            else:
                await trio.lowlevel.checkpoint()

    def _threads_busy(self) -> bool:
        limiters = (trio.to_thread.current_default_thread_limiter(), *self.limiters)
        return any(limiter.borrowed_tokens > 0 for limiter in limiters)
