"""Virtual time that waits for threads.

trio's own autojump takes a host for idle while a worker thread is busy, and lets its deadlines pass. This clock moves
on only when every task is blocked **and** none of them waits for a thread. What else the host waits for in real time (a
process, a socket) no clock can know: there a test has to :meth:`~VirtualClock.hold` it.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import math
from collections.abc import Iterator
from typing import Any, Final

import trio
from trio.testing import wait_all_tasks_blocked

from dsh_runtime.services.sessions.store import Store

#: Real seconds of stillness after which the host is taken for idle.
_STILL: Final = 0.002
#: Real seconds, more than any test lasts.
_FOREVER: Final = 1e9
#: Where a task waits for a thread: trio's own, or the one that writes the session log.
_THREADS: Final = frozenset(way.__code__ for way in (trio.to_thread.run_sync, Store.append, Store.run))
#: What a task that waits has below the function that it waits in.
_TRAPS: Final = trio.lowlevel.wait_task_rescheduled.__code__.co_filename


class VirtualClock(trio.abc.Clock):
    """A clock that stands still, and jumps to the next deadline when the host has nothing to do.

    It jumps while :meth:`keep` runs, which the kit's trial sees to. Give it to ``trio.run(…, clock=)``, or ask for the
    fixture ``virtual_clock``.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._held = 0

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
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time moves on by a finite number of seconds, not by {seconds!r}")
        self._now += seconds

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Have time stand still for the body of a ``with``: while the host waits for a process or a socket."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    async def keep(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Move on whenever nothing happens, until cancelled."""
        task_status.started()
        while True:
            await wait_all_tasks_blocked(_STILL)
            seconds = trio.lowlevel.current_statistics().seconds_to_next_deadline
            if 0 < seconds < math.inf and not self._held and not _thread_at_work():
                self.jump(seconds)
            # What was waited for wakes its task; a loop without a checkpoint would see to it that it never does.
            await trio.lowlevel.checkpoint()


def _thread_at_work() -> bool:
    """Whether a task waits for a thread, and not for what the thread has asked of the loop."""
    root = trio.lowlevel.current_root_task()
    waiting = [root] if root is not None else []
    while waiting:
        task = waiting.pop()
        if _waits_in(task) in _THREADS:
            return True
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return False


def _waits_in(task: trio.lowlevel.Task) -> object:
    """The innermost function of a task, without trio's own means of waiting."""
    innermost, waiting = None, task.coro
    while waiting is not None:
        frame = getattr(waiting, "cr_frame", None) or getattr(waiting, "gi_frame", None)
        if frame is not None and frame.f_code.co_filename != _TRAPS:
            innermost = frame.f_code
        waiting = _behind(waiting)
    return innermost


def _behind(waiting: Any) -> Any:
    """What a coroutine or generator waits for in its turn."""
    for attribute in ("cr_await", "gi_yieldfrom", "ag_await"):
        behind = getattr(waiting, attribute, None)
        if behind is not None:
            return behind
    # Nothing but the garbage collector knows what is in a wrapper, or whom a generator drives by hand.
    return next(filter(_is_suspended, gc.get_referents(waiting)), None)


def _is_suspended(found: Any) -> bool:
    if inspect.isasyncgen(found):
        return found.ag_await is not None
    return inspect.iscoroutine(found) and inspect.getcoroutinestate(found) == inspect.CORO_SUSPENDED
