"""What a plugin registers is its own, and stands where the config has put it."""

from __future__ import annotations

from dsh_runtime.core.events import FIRST, ORDINARY, Listener
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.kernel import Kernel
from dsh_runtime.testing.asserts import tell
from dsh_runtime.testing.checks.subject import PROBE, STAGES, Neighbour, Subject, fiber_of, made, mounted, tried
from dsh_runtime.testing.checks.tampering import spots_of
from dsh_runtime.testing.fakes import Denial
from dsh_runtime.testing.trial import open_trial


async def its_order_is_respected(subject: Subject) -> None:
    """All that it registers is its own, stands between that of its neighbours, and behind what those in front deny."""
    await _all_its_own(subject)
    async with tried(subject, front=[Neighbour("front")], behind=[Neighbour("behind")]) as trial:
        owner = fiber_of(trial, subject, 1)
        for stage in STAGES:
            _between(trial.host.ctx.fiber.kernel.events.listeners(stage), owner, stage)
    await _unheard_behind_a_denial(subject)


async def _all_its_own(subject: Subject) -> None:
    async with open_trial(*subject.companions) as trial:
        kernel: Kernel = trial.host.ctx.fiber.kernel
        others = set(kernel.fibers)
        earlier = {entry for fiber in (kernel.root, *others) for entry in fiber.entries}
        owner = await mounted(trial, subject)
        strangers = [fiber for fiber in kernel.fibers if fiber not in others and not _belongs(fiber, owner)]
        if strangers:
            raise AssertionError(
                f"the plugin mounts the plugin {strangers[0].id!r} beside itself; "
                "mount it below, with ctx.plugin() of the context that apply() is given"
            )
        for entry in [entry for entry in kernel.root.entries if entry not in earlier]:
            what = f"a listener of {entry.table[3:]!r}" if entry.table.startswith("on:") else f"a {entry.table}"
            raise AssertionError(
                f"the plugin registers {what} for the host and not for itself, so that it stands elsewhere in the "
                "order and outlives the plugin; register through the context that apply() is given"
            )


def _belongs(fiber: Fiber | None, owner: Fiber) -> bool:
    while fiber is not None:
        if fiber is owner:
            return True
        fiber = fiber.parent
    return False


def _between(listeners: tuple[Listener, ...], owner: Fiber, stage: str) -> None:
    order = [listener.plugin for listener in listeners]
    front, behind = order.index("front"), order.index("behind")
    mine = {id(entry.value): entry.band for fiber in _family(owner) for entry in fiber.entries}
    for place, listener in enumerate(listeners):
        if mine.get(id(listener)) == ORDINARY and not front < place < behind:
            raise AssertionError(
                f"{listener.where} on {stage!r} does not stand between its neighbours, but at {place}: {order}"
            )


def _family(fiber: Fiber) -> list[Fiber]:
    return [fiber, *(one for child in fiber.children for one in _family(child))]


async def _unheard_behind_a_denial(subject: Subject) -> None:
    async with tried(subject, front=[Denial()]) as trial:
        for spot in spots_of(fiber_of(trial, subject, 1)):
            if spot.stage == "tools/pre-execute" and spot.entry.band != FIRST:
                with spot.watched(trial):
                    result = await made(trial, PROBE)
                if spot.hits:
                    raise AssertionError(f"{spot.where} was asked although a plugin in front denied: {tell(result)}")
