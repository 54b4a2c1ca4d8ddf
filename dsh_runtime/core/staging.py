"""Staging: new versions of plugins are applied aside, and take the place of the old ones in one step.

A stage is a house of its own. Its ledger, events and scopes read through to what is in force, as if the fibers to be
replaced were not there: what is registered in it is unseen by calls and clashes with nothing that goes. Its background
tasks wait. :meth:`Stage.commit` makes all of it live, and the replaced fibers not, without a checkpoint between; those
come to rest in the house of the retired: calls under way end on the version that they began with, then it unwinds.
:meth:`Stage.rollback` unwinds the stage and leaves nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

import trio

from dsh_runtime.core.errors import DisposedError
from dsh_runtime.core.events import listener_table
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.house import House, provider_of, rests_on
from dsh_runtime.core.kernel import first_free
from dsh_runtime.core.ledger import Ledger
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.plugins import PluginSpec
from dsh_runtime.core.scopes import StagedScopes
from dsh_runtime.core.services import SERVICE

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.core.kernel import Kernel
    from dsh_runtime.core.ledger import Entry
    from dsh_runtime.core.scopes import ScopeHandle
    from dsh_runtime.core.tasks import BackgroundTask

_log = logging.getLogger("dsh.fibers")


class Stage(House):
    """A house beside what is in force. Made, filled and either committed or rolled back by one task."""

    def __init__(self, kernel: Kernel) -> None:
        ledger = Ledger(kernel.ledger)
        self._scopes = StagedScopes(kernel.scopes)
        super().__init__(ledger, kernel.events.beside(ledger), self._scopes)
        self._kernel = kernel
        self._ids: dict[str, Fiber] = {}
        #: The fibers in force that are to go, and who takes the place of each.
        self._leaving: dict[Fiber, Fiber | None] = {}
        self._moving: dict[Fiber, tuple[int, ...]] = {}
        #: The fibers that were added here, and below which context they are to stand.
        self._added: dict[Fiber, Context] = {}
        self._tasks: list[BackgroundTask] = []
        self._granting = trio.CancelScope()
        self._began: dict[Fiber, float] = {}
        #: How many seconds apply() of each fiber took.
        self.took: dict[Fiber, float] = {}
        ledger.watch(SERVICE, self.service_entries_changed)
        kernel.stages[self] = None
        kernel.nursery.start_soon(self._grant, name="staged plugin turns")

    # What is to change.

    def add(
        self,
        parent: Context,
        spec: PluginSpec,
        config: Any,
        *,
        fiber_id: str,
        path: tuple[int, ...],
        optional: bool = False,
        instead_of: Fiber | None = None,
    ) -> Fiber:
        """Apply a plugin aside; once committed it stands at ``path``, instead of a fiber that is in force."""
        if instead_of is not None:
            self.remove(instead_of)
        fiber = Fiber(self._kernel, parent, spec, self.free_id(fiber_id), self, path)
        fiber.optional = optional
        self._added[fiber] = parent
        if instead_of is not None:
            self._leaving[instead_of] = fiber
        self._kernel.launch(fiber, config)
        return fiber

    def remove(self, fiber: Fiber) -> None:
        """Have a fiber that is in force go, with all below it."""
        tree = list(family(fiber))
        self._leaving.setdefault(fiber, None)
        self.ledger.replace(tree)
        self._scopes.replaces = self.ledger.replaces
        self.events.hide(tree)
        self.services_changed([name for member in tree for name in member.offered])

    def move(self, fiber: Fiber, path: tuple[int, ...]) -> None:
        """Give a fiber that stays in force another position."""
        self._moving[fiber] = path

    def affected(self) -> list[Fiber]:
        """The fibers in force that would have to restart: a service that they use, or an event that they listen to,
        would be another.
        """
        found = {fiber for fiber in self._consumers() if any(self._would_be_stale(fiber, name) for name in fiber.uses)}
        return sorted(filter(self._stays, found | self._listeners()), key=lambda fiber: fiber.path)

    def _consumers(self) -> set[Fiber]:
        """The users in force of what goes and of what comes."""
        names = {name for fiber in (*self.ledger.replaces, *self.fibers) for name in fiber.offered}
        return {fiber for name in names for fiber in self._kernel.users(name)}

    def _would_be_stale(self, fiber: Fiber, name: str) -> bool:
        used, now = fiber.uses[name], provider_of(fiber, name, ledger=self.ledger)
        return used is not now and (used is not None or (now is not None and not rests_on(now.fiber, fiber)))

    def _listeners(self) -> set[Fiber]:
        """The listeners in force to events whose declaration goes."""
        declarers = self._kernel.events.declarers().items()
        tables = {listener_table(name) for name, fiber in declarers if fiber in self.ledger.replaces}
        listeners = self._kernel.fibers if tables else ()
        return {fiber for fiber in listeners if any(entry.table in tables for entry in fiber.entries)}

    # A house.

    def welcome(self, fiber: Fiber) -> None:
        """A fiber comes to live here."""
        super().welcome(fiber)
        self._ids[fiber.id] = fiber

    def free_id(self, wanted: str) -> str:
        """An id that nobody has, here or among those who stay in force."""
        return first_free(wanted, lambda name: name in self._ids or self._stays(self._kernel.holder_of(name)))

    def _stays(self, fiber: Fiber | None) -> bool:
        return fiber is not None and fiber not in self.ledger.replaces

    def state_changed(self, fiber: Fiber, old: State) -> None:
        """Look again at services and turns, and note how long an ``apply`` took."""
        if fiber.state is State.LOADING:
            self._began[fiber] = perf_counter()
        elif old is State.LOADING:
            self.took[fiber] = perf_counter() - self._began[fiber]
        super().state_changed(fiber, old)

    def something_changed(self) -> None:
        """Wake whoever waits in :meth:`next_change`."""
        self._kernel.something_changed()

    async def next_change(self) -> None:
        """Wait until something has changed, here or elsewhere."""
        await self._kernel.next_change()

    def begin(self, task: BackgroundTask) -> None:
        """Keep a background task for the swap."""
        self._tasks.append(task)

    def waiting_task_of(self, fiber: Fiber) -> BackgroundTask | None:
        """A background task of a fiber that waits for the swap, if it has one."""
        return next((task for task in self._tasks if task.fiber is fiber), None)

    def failed(self, fiber: Fiber, error: BaseException) -> None:
        """A new version has failed: whoever asked for it is told."""
        _log.debug("the new version of plugin %r failed: %r", fiber.id, error, exc_info=error)

    def close_scope(self, handle: ScopeHandle) -> list[ScopeHandle]:
        """End the scope that a handle owns; gives the handles that own the scopes below it, the lowest first."""
        closed = self.scopes.close(handle)
        for below in closed:
            self.ledger.withdraw_scope(below.key)
        return [below for below in closed if below is not handle]

    # The end of the stage.

    @trio.lowlevel.enable_ki_protection
    def commit(self) -> None:
        """Put the stage in force, in one step. If anything clashes by now, that is raised, and nothing has changed."""
        kernel = self._kernel
        self._check()
        self._end()
        for top, successor in self._leaving.items():
            for fiber in family(top):
                self._retire(fiber, successor is not None)
        moved = self._shift()
        self._take_places()
        came = list(self.fibers)
        for fiber in came:
            self.dismiss(fiber)
            kernel.welcome(fiber)
        changed = kernel.ledger.merge(self.ledger)
        kernel.events.merge(self.events, self.ledger.replaces)
        self._scopes.merge()
        # Everything has changed places: from here on others hear of it.
        self._contained(lambda: kernel.ledger.tell([*changed, *moved]))
        for task in self._tasks:
            task.begin()
        replaced = {new: old for old, new in self._leaving.items()}
        for fiber in came:
            previous = replaced[fiber].state if fiber in replaced else State.LOADING
            self._contained(lambda fiber=fiber, previous=previous: kernel.tell_state(fiber, str(previous)))  # type: ignore[misc]
        for fiber in self._leaving:
            fiber.dispose()

    async def rollback(self) -> None:
        """Unwind everything that has been applied here. What is in force has not changed."""
        with trio.CancelScope(shield=True):
            self.abandon()
            # Each has a deadline of its own, but for an apply() that goes on although it is cancelled.
            with trio.move_on_after(2 * self._kernel.teardown_timeout):
                while self.fibers:
                    await self.next_change()
        self._end()
        for fiber in self.fibers:
            _log.error("plugin %r goes on with apply() although it is cancelled; let apply() end then", fiber.id)

    def abandon(self) -> None:
        """Have everything that has been applied here unwind, without waiting for it."""
        for fiber in reversed(self._added):
            fiber.dispose()

    def _end(self) -> None:
        self._granting.cancel()
        self._kernel.stages.pop(self, None)

    def _check(self) -> None:
        kernel = self._kernel
        self.ledger.replace(fiber for top in self._leaving for fiber in family(top))
        self._scopes.replaces = self.ledger.replaces
        if kernel.root.wants_change:
            raise DisposedError("the host unwinds; nothing is reloaded any more")
        for parent in self._added.values():
            parent.stack.check_open("a new version")
        kernel.ledger.check_mergeable(self.ledger)
        kernel.events.check_mergeable(self.events, self.ledger.replaces)
        self._scopes.check_mergeable()

    def _retire(self, fiber: Fiber, replaced: bool) -> None:
        if fiber.state is State.DISPOSED:  # Somebody has disposed of it meanwhile.
            return
        fiber.stack.closed = True
        fiber.replaced = replaced
        self._kernel.dismiss(fiber)
        self._kernel.retired.welcome(fiber)

    def _shift(self) -> list[Entry]:
        """Give those that stay their new positions; gives what they have registered, which sorts anew."""
        turns = self._kernel.turns
        shifted = {fiber: top for top in self._moving for fiber in family(top)}
        for fiber in shifted:
            turns.remove(fiber)
        depths = {top: len(top.path) for top in self._moving}
        for fiber, top in shifted.items():
            fiber.path = (*self._moving[top], *fiber.path[depths[top] :])
        for fiber in shifted:
            turns.add(fiber)
        return [entry for fiber in shifted for entry in fiber.entries]

    def _take_places(self) -> None:
        """Stand where the old ones stood, also in the order of unloading; those unload before anything else does."""
        for old, new in self._leaving.items():
            if new is not None and old.mounted_as is not None and old.state is not State.DISPOSED:
                stack, step = new.mounted_as = old.mounted_as
                step.undo = new.end
                old.mounted_as = (stack, stack.add(old.end, f"plugin {old.id!r}", bounded=False))
            if old.parent is not None:
                old.parent.children.pop(old, None)
        for fiber, parent in self._added.items():
            parent.fiber.children[fiber] = None
            if fiber.mounted_as is None:
                fiber.mounted_as = (parent.stack, parent.stack.add(fiber.end, f"plugin {fiber.id!r}", bounded=False))

    def _contained(self, tell: Callable[[], None]) -> None:
        """Tell others; what one raises breaks nothing off half-way."""
        try:
            tell()
        except BaseException as error:
            self._kernel.escalate(error)

    async def _grant(self) -> None:
        with self._granting:
            await self.coordinate()


def family(fiber: Fiber) -> Iterator[Fiber]:
    """A fiber and all below it."""
    yield fiber
    for child in fiber.children:
        yield from family(child)


def top_of(fiber: Fiber) -> Fiber:
    """The fiber, or that one of its ancestors, which stands right below the root."""
    while fiber.parent is not None and not fiber.parent.is_root:
        fiber = fiber.parent
    return fiber
