"""What is left running when a plugin has been unloaded: threads of its own, and tasks that no plugin's stack holds.

Threads and tasks are compared before and after. A worker of trio's that waits for its next job belongs to nobody, and
neither does a thread of the host's.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import FrameType
from typing import Any, Final

import outcome
import trio
from attrs import frozen

from .errors import Location
from .ownership import MAX_FRAMES, frames_of, is_host, is_python, place_of_frame

_TRIO: Final = os.path.join(os.path.dirname(str(trio.__file__)), "")
_BELOW_A_JOB: Final = (_TRIO, os.path.join(os.path.dirname(str(outcome.__file__)), ""))
"""Whose code a worker's stack holds below the job."""
_WORKERS: Final = os.path.join(_TRIO, "_core", "_thread_cache.py")
GRACE: Final = 1.0
"""How long what has been told to end may take to do so, in seconds."""


@frozen
class Leftover:
    """A thread or task that still runs, where it was begun (as far as known) and where it is now."""

    kind: str
    name: str
    begun: Location | None
    now: Location | None

    def __str__(self) -> str:
        places = [f"begun in {self.begun}"] if self.begun else []
        places += [f"now at {self.now}"] if self.now and self.now != self.begun else []
        return f"the {self.kind} {self.name!r}" + (f" ({', '.join(places)})" if places else "")


def threads() -> set[threading.Thread]:
    """The threads that run somebody's code, but for this one and the host's own."""
    stacks = sys._current_frames()
    found = set()
    for thread in threading.enumerate():
        if thread is threading.current_thread() or thread is threading.main_thread() or thread.ident is None:
            continue
        if not _is_nobodys(frames_of(stacks.get(thread.ident))):
            found.add(thread)
    return found


def _is_nobodys(frames: list[FrameType]) -> bool:
    """Whether a thread is the host's, or a worker of trio's that waits for a job."""
    for frame in reversed(frames):
        filename = frame.f_code.co_filename
        if filename == _WORKERS:
            working = any(inner.f_code.co_name == "_handle_job" for inner in frames)
            return not working or all(_is_of_nobody(inner.f_code.co_filename) for inner in frames)
        if not is_python(filename):
            return is_host(filename)
    return False


def _is_of_nobody(filename: str) -> bool:
    return is_python(filename) or is_host(filename) or filename.startswith(_BELOW_A_JOB)


def describe_thread(thread: threading.Thread) -> Leftover:
    """A thread as a message names it."""
    frames = [frame for frame in frames_of(sys._current_frames().get(thread.ident or 0)) if _is_theirs(frame)]
    target = getattr(thread, "_target", None)
    code = getattr(getattr(target, "__func__", target), "__code__", None)
    if frames:
        begun = Location(frames[-1].f_code.co_filename, frames[-1].f_code.co_firstlineno)
    elif code is not None and not is_python(code.co_filename):
        begun = Location(code.co_filename, code.co_firstlineno)
    else:
        begun = None
    return Leftover("thread", thread.name, begun, place_of_frame(frames[0]) if frames else None)


def _is_theirs(frame: FrameType) -> bool:
    return not _is_of_nobody(frame.f_code.co_filename)


def tasks() -> set[trio.lowlevel.Task]:
    """Every task of this run of trio."""
    root = trio.lowlevel.current_root_task()
    found: set[trio.lowlevel.Task] = set()
    waiting = [root] if root is not None else []
    while waiting:
        task = waiting.pop()
        found.add(task)
        waiting += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found


def describe_task(task: trio.lowlevel.Task) -> Leftover:
    """A task as a message names it: by the code of somebody else's that it runs, if it runs any."""
    frames = _awaiting_frames(task.coro)
    frames = [frame for frame in frames if _is_theirs(frame)] or frames
    begun = Location(frames[0].f_code.co_filename, frames[0].f_code.co_firstlineno) if frames else None
    return Leftover("task", task.name, begun, place_of_frame(frames[-1]) if frames else None)


def _awaiting_frames(coroutine: Any) -> list[FrameType]:
    """The frames of a coroutine and of what it awaits, the outermost first."""
    frames: list[FrameType] = []
    while coroutine is not None and len(frames) < MAX_FRAMES:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            frames.append(frame)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return frames


async def outliving(earlier: set[threading.Thread]) -> list[threading.Thread]:
    """The threads that were not there ``earlier`` and do not end soon, in real time."""
    end = time.monotonic() + GRACE
    for thread in threads() - earlier:
        patience = max(0.0, end - time.monotonic())
        await trio.to_thread.run_sync(thread.join, patience)
    return sorted((thread for thread in threads() - earlier if thread.is_alive()), key=lambda thread: thread.name)
