"""A deadline that can stand still: when it is due, and the signal that it aborts."""

from __future__ import annotations

import math
from collections.abc import Callable

from dsh_hookspecs import AbortController, AbortSignal, DeadlineError, ExecutionToken

#: Reads the clock of the host's loop, which need not be the wall's.
Clock = Callable[[], float]


class Deadline:
    """One call's deadline. It aborts :attr:`signal`, unless the caller's signal was aborted before."""

    __slots__ = ("_caller", "_controller", "_holds", "_left", "_now", "_seconds", "due", "signal", "token")

    def __init__(self, token: ExecutionToken, seconds: float, caller: AbortSignal, now: Clock) -> None:
        self.token = token
        #: When the time is up; infinity while the deadline stands still.
        self.due = now() + seconds
        self._seconds = seconds
        self._left = seconds
        self._caller = caller
        self._now = now
        self._controller = AbortController()
        #: Aborted when the time is up.
        self.signal = self._controller.signal
        self._holds = 0

    @property
    def used(self) -> float:
        """The seconds during which the deadline ran, as of its last hold."""
        return self._seconds - self._left

    def hold(self) -> None:
        """Stand still; each hold needs a :meth:`release`."""
        if not self._holds:
            self._left = self.due - self._now()
            self.due = math.inf
        self._holds += 1

    def release(self) -> None:
        """Run on, once the last hold is gone."""
        self._holds -= 1
        if not self._holds:
            self.due = self._now() + self._left

    def check(self) -> bool:
        """Abort the signal if the time is up; say whether this deadline has aborted it."""
        if self.due <= self._now() and not self._caller.aborted:
            self._controller.abort(DeadlineError(f"the deadline of {self._seconds:g} s has passed"))
        return self.signal.aborted
