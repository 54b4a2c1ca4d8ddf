"""A deadline that can stand still: when it is due, and the signal that it aborts."""

from __future__ import annotations

import math

from dsh_hookspecs import AbortController, AbortSignal, DeadlineError, ExecutionToken


class Deadline:
    """One call's deadline. It aborts :attr:`signal`, unless the caller's signal was aborted before."""

    __slots__ = ("_caller", "_controller", "_holds", "_left", "_seconds", "due", "token")

    def __init__(self, token: ExecutionToken, seconds: float, caller: AbortSignal) -> None:
        self.token = token
        #: When the time is up, on the loop's clock; infinity while the deadline stands still.
        self.due = now() + seconds
        self._seconds = seconds
        self._left = seconds
        self._caller = caller
        self._controller = AbortController()
        self._holds = 0

    @property
    def signal(self) -> AbortSignal:
        """Aborted when the time is up."""
        return self._controller.signal

    @property
    def used(self) -> float:
        """The seconds during which the deadline ran, as of its last hold."""
        return self._seconds - self._left

    def hold(self) -> None:
        """Stand still; each hold needs a :meth:`release`."""
        if not self._holds:
            self._left = self.due - now()
            self.due = math.inf
        self._holds += 1

    def release(self) -> None:
        """Run on, once the last hold is gone."""
        self._holds -= 1
        if not self._holds:
            self.due = now() + self._left

    def check(self) -> bool:
        """Abort the signal if the time is up; say whether this deadline has aborted it."""
        if self.due <= now() and not self._caller.aborted:
            self._controller.abort(DeadlineError(f"the deadline of {self._seconds:g} s has passed"))
        return self.signal.aborted


def now() -> float:
    """The time on the clock that signals go by, which need not be the wall's."""
    return AbortSignal.timeout(0).deadline
