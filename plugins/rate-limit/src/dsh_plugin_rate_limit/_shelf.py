"""The buckets of one rule, bounded in number.

Strategy: a full bucket is as good as none, so dropping one loses nothing and grants nothing. They are swept out
whenever the shelf has doubled, which costs a constant per bucket, and when it has no room. If every bucket is in use
then, there is none for a new key until the first is full again: forgetting one in use would grant calls that were not
earned.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from attrs import define, field, frozen

from dsh_plugin_rate_limit._bucket import Bucket, Rate

_SWEEP_FROM: Final = 64


@frozen
class Wait:
    """How long a call has to wait, and whether only because there is no room for its counter."""

    seconds: float
    no_room: bool = False


@define(eq=False)
class Shelf:
    """Buckets by their keys."""

    rate: Rate
    _limit: int
    _buckets: dict[Hashable, Bucket] = field(factory=dict)
    _sweep_at: int = field(default=_SWEEP_FROM)
    _room_at: float = 0.0

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, key: Hashable, now: float) -> Wait:
        """How long a call has to wait; looking changes nothing for anybody."""
        bucket = self._buckets.get(key)
        if bucket is not None:
            return Wait(bucket.wait(now))
        return Wait(self._until_room(now), no_room=True)

    def take(self, key: Hashable, now: float) -> None:
        """Take the token of a call that need not wait."""
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = self.rate.full(now)
            if len(self._buckets) >= self._sweep_at:
                self._sweep(now, keep=key)
                self._sweep_at = max(2 * len(self._buckets), _SWEEP_FROM)
        bucket.take(now)

    def _until_room(self, now: float) -> float:
        """The seconds until one more bucket fits, 0 as a rule. A shelf without room is not searched on every call."""
        if len(self._buckets) < self._limit:
            return 0.0
        if not self._room_at - self._longest <= now < self._room_at:
            self._sweep(now)
            if len(self._buckets) < self._limit:
                return 0.0
            self._room_at = now + min(bucket.until_full(now) for bucket in self._buckets.values())
        return self._room_at - now

    @property
    def _longest(self) -> float:
        """The longest that a bucket takes to become full; a time further off is that of a clock that jumped back."""
        return self.rate.size / self.rate.per_second

    def _sweep(self, now: float, keep: Hashable = None) -> None:
        full = [key for key, bucket in self._buckets.items() if key != keep and bucket.until_full(now) <= 0]
        for key in full:
            del self._buckets[key]
