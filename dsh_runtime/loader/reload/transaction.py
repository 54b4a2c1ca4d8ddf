"""One reload of plugins that belong together: imported, applied and put in force as one, or not at all.

Where every new version can be there beside the old one they are swapped: applied aside and put in force in one step.
Where one cannot, the old ones unload first, while calls wait at the gate, and are applied again if the new ones fail.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import TypeAlias

import trio
from attrs import define, field
from dsh_hookspecs import HarnessError

from dsh_runtime.core.context import Context
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.staging import Stage, family, top_of
from dsh_runtime.core.standby import Place, bring_to_rest, unload
from dsh_runtime.loader.errors import ConfigProblem
from dsh_runtime.loader.model import HostConfig

from .aside import Aside
from .member import Member
from .trouble import problem_of_late, problems_of_fiber

#: Makes a member of a plugin in force that turns out to be concerned, and says what of it comes afresh.
Enlist: TypeAlias = Callable[[Fiber], tuple[Member, frozenset[str]]]


@define(eq=False)
class Transaction:
    """Carried out by :meth:`run`. ``removed`` go with it, ``moves`` are new positions of plugins that stay.

    ``committed`` is called in the same step in which the new versions are put in force, ``exchanged`` with an old fiber
    and the one in which the old version has been applied again.
    """

    ctx: Context
    config: HostConfig
    members: list[Member]
    aside: Aside
    enlist: Enlist
    committed: Callable[[], None]
    exchanged: Callable[[Fiber, Fiber], None]
    removed: Sequence[Fiber] = ()
    moves: Mapping[Fiber, tuple[int, ...]] = field(factory=dict)
    superseded: bool = False
    #: What is wrong that is no single plugin's fault.
    problems: list[ConfigProblem] = field(factory=list)
    #: The plugins that turn out to need a restart, and why.
    restart: dict[str, str] = field(factory=dict)
    _waiting: trio.CancelScope | None = None

    async def run(self) -> bool:
        """Whether the new versions are in force. If not, everything is as it was, and the problems say why."""
        done = False
        try:
            self.aside.begin()
            for member in self.members:
                self._prepare(member)
            done = self._fine() and await self._carry_out()
        finally:
            if not done:
                self.aside.restore()
        return done

    def supersede(self) -> None:
        """Give up, as far as the new versions are not in force yet."""
        self.superseded = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _fine(self) -> bool:
        broken = any(member.problems for member in self.members)
        return not (broken or self.superseded or self.problems or self.restart)

    async def _carry_out(self) -> bool:
        if not self._stops_first() and await self._swap():
            return True
        if not self._fine() or not self._stops_first():
            return False
        for member in self.members:
            member.check_config()
        return self._fine() and await self._stop_first()

    def _stops_first(self) -> bool:
        return any(member.stops_first for member in self.members)

    # Side by side.

    async def _swap(self) -> bool:
        stage = Stage(self.ctx.fiber.kernel)
        done = False
        try:
            for fiber in self.removed:
                stage.remove(fiber)
            for fiber, path in self.moves.items():
                stage.move(fiber, path)
            self._stage(stage, self.members)
            done = await self._settled(stage) and self._commit(stage)
        finally:
            if not done:
                await stage.rollback()
        return done

    def _stage(self, stage: Stage, members: Iterable[Member]) -> None:
        for member in members:
            assert member.spec is not None
            member.fiber = stage.add(
                self.ctx,
                member.spec,
                member.config,
                fiber_id=member.id,
                path=member.path,
                optional=member.optional,
                instead_of=member.old,
            )

    async def _settled(self, stage: Stage) -> bool:
        """Whether all new versions are active, with those that turn out to be concerned by them."""
        while True:
            await self._wait(stage.settle, stage)
            for member in self.members:
                member.seconds += stage.took.pop(member.fiber, 0.0) if member.fiber is not None else 0.0
            affected = dict.fromkeys(top_of(fiber) for fiber in stage.affected()) if self._fine() else {}
            if not affected:
                return self._fine()
            new = [self._join(fiber) for fiber in affected]
            if not self._fine() or self._stops_first():
                return False
            self._stage(stage, new)

    def _join(self, fiber: Fiber) -> Member:
        member, afresh = self.enlist(fiber)
        self.aside.add(afresh)
        self.members.append(member)
        self._prepare(member)
        return member

    def _prepare(self, member: Member) -> None:
        if member.refuses is not None:
            self.restart[member.id] = member.refuses
            return
        if member.anchor is not None and member.anchor.file is not None:
            self.aside.note(member.anchor.module, member.anchor.file)
        member.prepare(self.config)
        if member.stops_never:
            self.restart[member.id] = "its new version says reload_policy = 'restart'"

    def _commit(self, stage: Stage) -> bool:
        try:
            stage.commit()
        except HarnessError as error:
            self.problems.append(ConfigProblem((), str(error)))
            return False
        self.committed()
        return True

    # One after the other.

    async def _stop_first(self) -> bool:
        held = next(member.old for member in self.members if member.stops_first)
        assert held is not None
        olds = [*(member.old for member in self.members if member.old is not None), *self.removed]
        with self.ctx.fiber.kernel.holding_calls(held):
            await bring_to_rest(olds)
            places = {member: self._place_of(member) for member in self.members}
            leaving = {fiber: Place.of(fiber, self.ctx) for fiber in self.removed}
            before = {fiber: fiber.path for fiber in self.moves}
            await unload(olds)
            self._move(self.moves)
            done = await self._live(places)
            if done:
                self._settle(places, leaving)
            else:
                self._move(before)
                await self._go_back(places, leaving)
        return done

    def _place_of(self, member: Member) -> Place:
        if member.old is None or member.old.state is State.DISPOSED:
            return Place.new(self.ctx, member.id)
        return Place.of(member.old, self.ctx)

    def _move(self, moves: Mapping[Fiber, tuple[int, ...]]) -> None:
        stage = Stage(self.ctx.fiber.kernel)
        for fiber, path in moves.items():
            stage.move(fiber, path)
        stage.commit()

    async def _live(self, places: Mapping[Member, Place]) -> bool:
        """Whether the new versions, in the places of the old ones, are active."""
        for member, place in places.items():
            assert member.spec is not None
            member.fiber = place.mount(member.spec, member.config, member.path, optional=member.optional)
        began = perf_counter()
        await self._wait(self.ctx.fiber.kernel.settle)
        for member in self.members:
            member.seconds += perf_counter() - began
        return self._fine()

    def _settle(self, places: Mapping[Member, Place], leaving: Mapping[Fiber, Place]) -> None:
        for member, place in places.items():
            assert member.fiber is not None
            place.settle(member.fiber)
        for place in leaving.values():
            place.give_up()
        self.committed()

    async def _go_back(self, places: Mapping[Member, Place], leaving: Mapping[Fiber, Place]) -> None:
        """Apply the old versions again."""
        await unload([member.fiber for member in places if member.fiber is not None])
        self.aside.restore()
        back = {member.old: place for member, place in places.items() if member.old is not None}
        for place in (place for member, place in places.items() if member.old is None):
            place.give_up()
        fibers = []
        for old, place in (*back.items(), *leaving.items()):
            fiber = place.mount(old.spec, old.config, old.path, optional=old.optional)
            place.settle(fiber)
            self.exchanged(old, fiber)
            fibers.append(fiber)
        with trio.move_on_after(self._limit()):
            await self.ctx.fiber.kernel.settle()
        for fiber in fibers:
            if fiber.state is not State.ACTIVE:
                text = f"the old version of plugin {fiber.id!r} could not be applied again: it is {fiber.state}"
                self.problems += [ConfigProblem((), text), *problems_of_fiber(fiber, may_wait=False)]

    # Waiting.

    def _limit(self) -> float:
        limit = self.config.host.reload_timeout
        return math.inf if limit is None else limit

    async def _wait(self, settle: Callable[[], Awaitable[None]], stage: Stage | None = None) -> None:
        """Wait until the new versions have settled, and note what is wrong with them."""
        with trio.move_on_after(self._limit()) as self._waiting:
            if self.superseded:
                self._waiting.cancel()
            await settle()
        self._waiting = None
        for member in self.members:
            for fiber in family(member.fiber) if member.fiber is not None else ():
                if fiber is member.fiber or not fiber.optional:
                    self._look_at(fiber, member, stage)

    def _look_at(self, fiber: Fiber, member: Member, stage: Stage | None) -> None:
        if fiber.state in (State.LOADING, State.UNLOADING):
            member.problems.append(problem_of_late(fiber, stage, self._limit()))
            return
        may_wait = member.loaded is not None and not member.was_active and fiber is member.fiber
        member.problems += problems_of_fiber(fiber, may_wait=may_wait)
