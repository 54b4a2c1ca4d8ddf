"""Reloading what cannot exist twice: the old version unloads, keeping its place, and another one is applied there.

Whoever does it holds the calls at the gate meanwhile (:meth:`~dsh_runtime.core.kernel.Kernel.holding_calls`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from dsh_runtime.core.effects import EffectStack, Step
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.staging import family

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.core.plugins import PluginSpec


@frozen(eq=False)
class Place:
    """Where fibers stand, one after the other: below which context, and where in the order of unloading."""

    parent: Context
    id: str
    stack: EffectStack
    step: Step

    @classmethod
    def new(cls, parent: Context, fiber_id: str) -> Place:
        """A place where nobody has stood before."""
        step = parent.stack.add(_nothing, f"plugin {fiber_id!r}", bounded=False)
        return cls(parent, fiber_id, parent.stack, step)

    @classmethod
    def of(cls, fiber: Fiber, parent: Context) -> Place:
        """The place of a fiber, which it no longer gives up when it goes."""
        assert fiber.mounted_as is not None
        stack, step = fiber.mounted_as
        fiber.mounted_as = None
        return cls(parent, fiber.id, stack, step)

    def mount(self, spec: PluginSpec, config: Any, path: tuple[int, ...], *, optional: bool) -> Fiber:
        """Have a plugin live here, at once and in force."""
        kernel = self.parent.fiber.kernel
        self.parent.stack.check_open(f"plugin {self.id!r}")
        fiber = Fiber(kernel, self.parent, spec, self.id, kernel, path)
        fiber.optional = optional
        self.step.undo = fiber.end
        self.parent.fiber.children[fiber] = None
        kernel.launch(fiber, config)
        return fiber

    def settle(self, fiber: Fiber) -> None:
        """The fiber is to stay: from now on it gives up the place when it goes."""
        fiber.mounted_as = (self.stack, self.step)

    def give_up(self) -> None:
        """Nobody is going to stand here any more."""
        self.stack.drop(self.step)


async def bring_to_rest(fibers: Sequence[Fiber]) -> None:
    """Wait until no call under way uses the fibers. They stay in force: sub-calls find all that they need."""
    for top in fibers:
        for fiber in family(top):
            await fiber.kernel.drain(fiber)


async def unload(fibers: Sequence[Fiber]) -> None:
    """Dispose of fibers and wait until they are gone, whatever their undo steps raise (that is logged)."""
    for fiber in reversed(fibers):
        fiber.dispose()
    for fiber in fibers:
        while fiber.state is not State.DISPOSED:
            await fiber.kernel.next_change()


def _nothing() -> None:
    """The undo of an empty place."""
