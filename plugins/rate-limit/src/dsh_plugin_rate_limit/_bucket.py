"""Token buckets: how many calls may be made now, and when the next one may.

A bucket holds up to ``size`` tokens, a call takes one, and they come back at a steady rate. Time is whatever clock the
caller reads. One that jumps back costs nothing and gives nothing: the bucket goes on from the new time.
"""

from __future__ import annotations

from typing import Final

from attrs import define, frozen

#: What rounding may keep from a token: whoever has waited as long as they were told does not wait again.
_ROUNDING: Final = 1e-6


@frozen
class Rate:
    """How fast tokens come back, and how many there are at most."""

    per_second: float
    size: int

    def full(self, now: float) -> Bucket:
        """A bucket from which nobody has taken anything."""
        return Bucket(self, float(self.size), now)


@define(eq=False)
class Bucket:
    """The tokens of one counter, as of the time at which they were last looked at."""

    rate: Rate
    _tokens: float
    _as_of: float

    def wait(self, now: float) -> float:
        """The seconds until a call may be made; 0 if it may be now."""
        self._refill(now)
        return 0.0 if self._tokens >= 1 - _ROUNDING else (1 - self._tokens) / self.rate.per_second

    def take(self, now: float) -> None:
        """Take the token of one call; only after :meth:`wait` has said 0 for the same time."""
        self._refill(now)
        self._tokens -= 1

    def until_full(self, now: float) -> float:
        """The seconds until the bucket is as good as a new one."""
        self._refill(now)
        return (self.rate.size - self._tokens) / self.rate.per_second

    def _refill(self, now: float) -> None:
        gained = max(now - self._as_of, 0.0) * self.rate.per_second
        self._tokens = min(self._tokens + gained, float(self.rate.size))
        self._as_of = now
