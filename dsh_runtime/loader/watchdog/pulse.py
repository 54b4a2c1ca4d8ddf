"""Does the event loop go on? Where it does not, what holds it.

A thread looks whether the loop waits for events. Where it does not, the thread asks it for a sign of life, and looks at
its stack if none comes in time. While all is well that is two wake-ups in the time of the limit, and nothing at all on
the way of a call.

Code that holds the interpreter itself (a regular expression that goes astray) also holds that thread. It has been
waiting for the interpreter, and gets it as soon as the call ends that held it: so it looks at once, before the loop has
gone on much. A process that was stopped comes late, too, but has not used the processor.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Final

import trio
from attrs import field, frozen

from dsh_runtime.loader.errors import Location
from dsh_runtime.loader.ownership import Spot, blame_stack, spots_of
from dsh_runtime.loader.start import TELL_NOW

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber

_log = logging.getLogger("dsh.host")

Fibers = Callable[[], Iterable["Fiber"]]

_LATE: Final = 0.05
"""How soon a loop answers that was merely stopped together with everything else, in seconds."""
_BUSY: Final = 0.2
"""The share of the time for which a process used the processor, from which on it was not asleep."""
_AGAIN: Final = 60.0
"""For so long the same place is not told again, in seconds."""
_MAX_TOLD: Final = 100


@frozen
class Stretch:
    """A stretch of time, and how much of the processor was used since it began."""

    _began: float = field(factory=time.monotonic)
    _used: float = field(factory=time.process_time)

    @property
    def seconds(self) -> float:
        """How long it is by now."""
        return time.monotonic() - self._began

    @property
    def was_busy(self) -> bool:
        """Whether the process was at work, and neither stopped nor asleep."""
        return time.process_time() - self._used >= _BUSY * self.seconds


class Pulse:
    """Asks a running loop for signs of life. Made in the loop's own thread."""

    def __init__(self, limit: float, fibers: Fibers) -> None:
        self._limit = limit
        self._fibers = fibers
        self._token = trio.lowlevel.current_trio_token()
        self._loop = threading.get_ident()
        self._told: dict[Location, float] = {}

    def rest(self, over: threading.Event) -> None:
        """Let some time pass; tell what held the interpreter meanwhile, if anything did."""
        rest = self._limit / 2
        stretch = Stretch()
        over.wait(rest)
        frame = self._stack()
        held = stretch.seconds - rest
        if held >= self._limit and stretch.was_busy:
            found = self._blamed(frame)
            if found is not None and found.plugin is not None:  # Where the loop is elsewhere by now, nobody is blamed.
                self._tell(found, f"held the event loop for {held:.1f} s, there or right before")

    def beat(self, over: threading.Event) -> None:
        """Ask the loop once, wait for the answer, and tell what holds it if none comes.

        One that waits for events is well, and is not woken for the question.
        """
        if self._stack() is None:
            return
        answered = threading.Event()
        stretch = Stretch()
        try:
            self._token.run_sync_soon(answered.set)
        except trio.RunFinishedError:
            over.set()
            return
        if answered.wait(self._limit) or over.is_set():
            return
        found = self._blamed(self._stack())
        if answered.wait(_LATE) and not stretch.was_busy:
            return
        told = self._tell(found, f"has held the event loop for more than {self._limit:g} s")
        while not answered.wait(self._limit) and not over.is_set():
            pass
        if told and answered.is_set():
            _log.info("the event loop goes on after %.1f s", stretch.seconds, extra=TELL_NOW)

    def _blamed(self, frame: FrameType | None) -> Spot | None:
        """What the loop is at, by its stack; ``None`` when it waits for events, as it should."""
        return blame_stack(spots_of(frame), self._fibers())

    def _stack(self) -> FrameType | None:
        """The innermost frame of the loop's stack, unless it waits for events."""
        frame = sys._current_frames().get(self._loop)
        return None if frame is None or frame.f_code.co_name == "get_events" else frame

    def _tell(self, found: Spot | None, what: str) -> bool:
        """Warn, unless the same place was told a short time ago."""
        now = time.monotonic()
        self._told = {place: at for place, at in self._told.items() if now - at < _AGAIN}
        if found is None or found.place in self._told or len(self._told) >= _MAX_TOLD:
            return False
        self._told[found.place] = now
        _log.warning(
            "%s%s (in %s) %s, and every other call waits; await there, or hand the work to a thread "
            "(trio.to_thread.run_sync)",
            f"plugin {found.plugin!r} at " if found.plugin is not None else "",
            found.place,
            found.function,
            what,
            extra=TELL_NOW,
        )
        return True
