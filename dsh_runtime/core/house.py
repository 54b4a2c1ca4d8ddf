"""Houses: where fibers live. A house has the tables that count for its fibers, and the order of their turns.

The kernel is the house of all that is in force. A :class:`~dsh_runtime.core.staging.Stage` is a house beside it, for
new versions that are applied aside; what has been replaced moves to a house of its own to come to rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.services import SERVICE
from dsh_runtime.core.turns import Turns

if TYPE_CHECKING:
    from dsh_runtime.core.events import EventTable
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.core.kernel import Kernel
    from dsh_runtime.core.ledger import Entry, Ledger
    from dsh_runtime.core.scopes import ScopeHandle, ScopeTree
    from dsh_runtime.core.tasks import BackgroundTask


_log = logging.getLogger("dsh.fibers")


class House:
    """What fibers that count together share."""

    def __init__(self, ledger: Ledger, events: EventTable, scopes: ScopeTree) -> None:
        self.ledger = ledger
        self.events = events
        self.scopes = scopes
        self.turns = Turns()
        self._users: dict[str, dict[Fiber, None]] = {}

    @property
    def fibers(self) -> dict[Fiber, None]:
        """Those who live here."""
        return self.turns.fibers

    def free_id(self, wanted: str) -> str:
        """An id that nobody here has."""
        raise NotImplementedError

    def something_changed(self) -> None:
        """Wake whoever waits in :meth:`next_change`."""
        raise NotImplementedError

    async def next_change(self) -> None:
        """Wait until something has changed, here or elsewhere."""
        raise NotImplementedError

    def begin(self, task: BackgroundTask) -> None:
        """Run a background task of a fiber, or keep it until its time comes."""
        task.begin()

    def failed(self, fiber: Fiber, error: BaseException) -> None:
        """A fiber has failed: tell whoever runs the host."""
        _log.error("plugin %r failed: %r", fiber.id, error, exc_info=error, extra={"dsh_failed": fiber.id})

    def close_scope(self, handle: ScopeHandle) -> list[ScopeHandle]:
        """End the scope that a handle owns; gives the handles that own the scopes below it, the lowest first."""
        raise NotImplementedError

    # Coming, changing, going.

    def welcome(self, fiber: Fiber) -> None:
        """A fiber comes to live here, with the services that it uses."""
        fiber.house = self
        self.turns.add(fiber)
        self.index_uses(fiber, fiber.uses)

    def dismiss(self, fiber: Fiber) -> None:
        """A fiber lives here no more."""
        self.turns.remove(fiber)
        self.index_uses(fiber, ())

    def wished(self, fiber: Fiber) -> None:
        """A fiber has been asked for something, or has done it."""
        self.turns.note(fiber)

    def state_changed(self, fiber: Fiber, old: State) -> None:
        """Look again at services and turns."""
        self.turns.note(fiber)
        if fiber.offered:
            self.services_changed(fiber.offered)
        self.something_changed()

    # Turns.

    async def coordinate(self) -> None:
        """Grant turns, one at a time and in order, for as long as the house stands."""
        while True:
            ready = self.turns.next()
            if ready is None:
                await self.next_change()
            else:
                ready.grant_turn()

    async def settle(self) -> None:
        """Wait until no fiber is on its way to another state."""
        while self.turns.busy():
            await self.next_change()

    # Services.

    def index_uses(self, fiber: Fiber, names: Iterable[str]) -> None:
        """Note whom to look at when one of these services changes."""
        for name in [name for name in fiber.uses if name not in names]:
            users = self._users.get(name, {})
            users.pop(fiber, None)
            if not users:
                self._users.pop(name, None)
        for name in names:
            self._users.setdefault(name, {})[fiber] = None

    def users(self, name: str) -> tuple[Fiber, ...]:
        """The fibers that use a service of this name, or would if it were there."""
        return tuple(self._users.get(name, ()))

    def consumers(self, provider: Fiber) -> list[Fiber]:
        """The fibers that use a service of ``provider``, last in order first."""
        users = {fiber for name in provider.offered for fiber in self.users(name) if fiber.uses_of(provider)}
        return sorted(users - {provider}, key=lambda fiber: fiber.path, reverse=True)

    def services_changed(self, names: Iterable[str]) -> None:
        """Restart each consumer for whom one of these services is another one now, or gone, or has come."""
        for fiber in dict.fromkeys(fiber for name in tuple(names) for fiber in self.users(name)):
            if fiber.state in (State.LOADING, State.ACTIVE) and any(self._stale(fiber, name) for name in fiber.uses):
                fiber.restart()
        self.something_changed()

    def _stale(self, fiber: Fiber, name: str) -> bool:
        used, now = fiber.uses[name], provider_of(fiber, name)
        if used is now or (used is None and now is not None and rests_on(now.fiber, fiber)):
            # To take up a service that rests on the fiber itself would take it away again, for ever.
            return False
        # A provider that unloads sees to its consumers itself, one after the other.
        return used is None or used.fiber.state is not State.UNLOADING

    def service_entries_changed(self, entries: Iterable[Entry]) -> None:
        """Services have come or gone."""
        self.services_changed(dict.fromkeys(str(entry.key) for entry in entries))


class Retired(House):
    """The house of what has been replaced, or removed, by a swap: its fibers come to rest there, seen by nobody."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel.ledger, kernel.events, kernel.scopes)
        self._kernel = kernel

    def free_id(self, wanted: str) -> str:
        """An id that nobody here has."""
        return self._kernel.free_id(wanted)

    def something_changed(self) -> None:
        """Wake whoever waits in :meth:`next_change`."""
        self._kernel.something_changed()

    async def next_change(self) -> None:
        """Wait until something has changed, here or elsewhere."""
        await self._kernel.next_change()

    def close_scope(self, handle: ScopeHandle) -> list[ScopeHandle]:
        """End the scope that a handle owns; gives the handles that own the scopes below it, the lowest first."""
        return self._kernel.close_scope(handle)


def provider_of(
    fiber: Fiber, name: str, realms: dict[str, object] | None = None, ledger: Ledger | None = None
) -> Entry | None:
    """The service that ``fiber`` would get under ``name`` now; only an active provider counts, or itself."""
    realm = (fiber.realms if realms is None else realms).get(name)
    entry = (fiber.ledger if ledger is None else ledger).find(SERVICE, realm, name)
    if entry is None or not (entry.fiber.state is State.ACTIVE or entry.fiber is fiber or entry.fiber.is_root):
        return None
    return entry


def rests_on(fiber: Fiber, base: Fiber) -> bool:
    """Whether ``fiber`` would go if ``base`` went: it is below it, or uses what rests on it."""
    found = [fiber]
    for member in found:  # The list grows while it is walked.
        if member is base:
            return True
        near = [member.parent, *(entry.fiber for entry in member.uses.values() if entry is not None)]
        found += [other for other in near if other is not None and other not in found]
    return False
