"""Whose turn is next: fibers by what they are up to, in the order of their positions.

Fibers that are ready apply one at a time, in order. A fiber that waits for another one while it applies lends its turn,
so that a parent can wait for the child it has mounted. Every fiber is kept under what it is up to, so that a change
costs no walk over all of them.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dsh_runtime.core.lifecycle import State

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber

_STAYING = (State.LOADING, State.ACTIVE)


class InOrder:
    """Fibers in the order of their positions."""

    def __init__(self) -> None:
        self._fibers: list[Fiber] = []

    def keep(self, fiber: Fiber, whether: bool) -> None:
        """Have the fiber among them, or not."""
        at = bisect_left(self._fibers, fiber.path, key=_position)
        # Versions of one plugin that have been replaced share a position.
        while at < len(self._fibers) and self._fibers[at] is not fiber and self._fibers[at].path == fiber.path:
            at += 1
        there = at < len(self._fibers) and self._fibers[at] is fiber
        if whether and not there:
            insort(self._fibers, fiber, key=_position)
        elif there and not whether:
            del self._fibers[at]

    @property
    def first(self) -> Fiber | None:
        """The first of them."""
        return self._fibers[0] if self._fibers else None

    def __iter__(self) -> Iterator[Fiber]:
        return iter(self._fibers)


class Turns:
    """The fibers that take turns with one another."""

    def __init__(self) -> None:
        self.fibers: dict[Fiber, None] = {}
        self._pending = InOrder()
        self._inactive = InOrder()
        self._moving: dict[Fiber, None] = {}
        self._wishing: dict[Fiber, None] = {}

    def add(self, fiber: Fiber) -> None:
        """A fiber has come."""
        self.fibers[fiber] = None
        self.note(fiber)

    def remove(self, fiber: Fiber) -> None:
        """A fiber is gone."""
        if fiber in self.fibers:
            del self.fibers[fiber]
            self._pending.keep(fiber, False)
            self._inactive.keep(fiber, False)
            self._moving.pop(fiber, None)
            self._wishing.pop(fiber, None)

    def note(self, fiber: Fiber) -> None:
        """A fiber's state or wishes have changed."""
        if fiber not in self.fibers:
            return
        self._pending.keep(fiber, fiber.state is State.PENDING)
        self._inactive.keep(fiber, not fiber.optional and fiber.state is not State.ACTIVE)
        _keep(self._moving, fiber, fiber.state in (State.LOADING, State.UNLOADING))
        _keep(self._wishing, fiber, fiber.wants_change)

    @property
    def inactive(self) -> Fiber | None:
        """The first fiber, in order, that must be active and is not."""
        return self._inactive.first

    def busy(self) -> bool:
        """Whether anything is under way that could change a fiber's state."""
        return (
            bool(self._wishing)
            or any(fiber.state is State.UNLOADING or not fiber.lends_turn for fiber in self._moving)
            or any(fiber.error is not None or is_ready(fiber) for fiber in self._pending)
        )

    def next(self) -> Fiber | None:
        """The fiber that is to be applied now, if it is anybody's turn."""
        if any(fiber.state is State.LOADING and not fiber.lends_turn for fiber in self._moving):
            return None
        return next(filter(is_ready, self._pending), None)


def is_ready(fiber: Fiber) -> bool:
    """Whether a fiber can be applied."""
    if fiber.state is not State.PENDING or fiber.error is not None or fiber.wants_change:
        return False
    # What a plugin has mounted is not applied any more once the plugin itself is on its way out.
    parent = fiber.parent
    return (parent is None or (parent.state in _STAYING and not parent.wants_change)) and not fiber.missing


def _position(fiber: Fiber) -> tuple[int, ...]:
    return fiber.path


def _keep(fibers: dict[Fiber, None], fiber: Fiber, whether: bool) -> None:
    if whether:
        fibers[fiber] = None
    else:
        fibers.pop(fiber, None)
