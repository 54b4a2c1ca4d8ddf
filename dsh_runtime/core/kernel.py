"""The kernel: one root, its tables, and the order in which fibers get their turn.

Fibers that are ready apply one at a time, in the order of their positions. A fiber that waits for another one while it
applies lends its turn, so that a parent can wait for the child it has mounted.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator
from types import TracebackType
from typing import Any

import trio

from dsh_runtime.core.context import Context
from dsh_runtime.core.errors import ServiceError
from dsh_runtime.core.events import EventTable, emit
from dsh_runtime.core.fiber import Fiber, RootFiber, current_fiber
from dsh_runtime.core.ledger import Entry, Ledger
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.plugins import PluginSpec, read_plugin
from dsh_runtime.core.scopes import ScopeHandle, ScopeTree
from dsh_runtime.core.services import SERVICE

_log = logging.getLogger("dsh.kernel")

Configure = Callable[[PluginSpec, Any], Any]
Drainer = Callable[[Fiber], Awaitable[None]]


class MissingInjectError(ServiceError, AttributeError):
    """A plugin uses a service that it does not inject."""


class Kernel:
    """What all fibers of one host share. Made by :func:`open_kernel`."""

    def __init__(self, nursery: trio.Nursery, configure: Configure, teardown_timeout: float) -> None:
        self.nursery = nursery
        self.configure = configure
        self.teardown_timeout = teardown_timeout
        self.ledger = Ledger()
        self.events = EventTable(self.ledger)
        self.scopes = ScopeTree()
        self.fibers: dict[Fiber, None] = {}
        self.closed_by: Fiber | None = None
        self._drainers: dict[Drainer, None] = {}
        self._scope_watchers: dict[Callable[[Hashable], None], None] = {}
        self._change = trio.Event()
        self.root = RootFiber(self, None, _ROOT, "root")
        self.ledger.watch(SERVICE, self._services_changed)

    # Mounting.

    def mount(self, ctx: Context, plugin: Any, config: Any, *, fiber_id: str | None, optional: bool) -> Fiber:
        """Make a fiber below ``ctx``; its plugin is applied when its turn comes."""
        spec = read_plugin(plugin)
        fiber = Fiber(self, ctx, spec, self._free_id(fiber_id or spec.name))
        fiber.optional = fiber.optional or optional
        step = ctx.stack.add(fiber.end, f"plugin {fiber.id!r}", bounded=False)
        fiber.mounted_as = (ctx.stack, step)
        ctx.fiber.children[fiber] = None
        self.fibers[fiber] = None
        fiber.set_config(config)
        self.nursery.start_soon(fiber.run, name=f"plugin {fiber.id}")
        self._update_gate()
        self._changed()
        return fiber

    def forget(self, fiber: Fiber) -> None:
        """A fiber is disposed."""
        self.fibers.pop(fiber, None)
        if fiber.parent is not None:
            fiber.parent.children.pop(fiber, None)
        self._update_gate()
        self._changed()

    def carry_hooks(self, fiber: Fiber) -> None:
        """Register the ``@hookimpl`` functions of a fiber's plugin; one that lacks the marker is refused."""
        self.events.check_unmarked(fiber.spec.source, fiber.id)
        for listener, band in self.events.carrier_listeners(fiber.spec.hooks, fiber):
            fiber.ctx._listen(listener, band)

    # Turns.

    async def coordinate(self) -> None:
        """Grant turns, one at a time and in order, for as long as the kernel lives."""
        while True:
            ready = None if self._somebody_loads() else self._next_ready()
            if ready is None:
                await self.next_change()
            else:
                ready.grant_turn()

    def busy(self) -> bool:
        """Whether anything is under way that could change a fiber's state."""
        return any(
            fiber.state is State.UNLOADING
            or (fiber.state is State.LOADING and not fiber.lends_turn)
            or (fiber.state is State.PENDING and (fiber.error is not None or self._is_ready(fiber)))
            or fiber.wants_change
            for fiber in self.fibers
        )

    async def settle(self) -> None:
        """Wait until no fiber is on its way to another state."""
        while self.busy():
            await self.next_change()

    @contextlib.contextmanager
    def waiting_for(self, target: Fiber) -> Iterator[None]:
        """Let others be applied while the caller's fiber, if it is being applied, waits for ``target`` to rest."""
        fiber = current_fiber.get()
        if fiber is None or fiber.kernel is not self or fiber.state is not State.LOADING:
            yield
            return
        fiber._awaited.append(target)
        self._changed()
        try:
            yield
        finally:
            fiber._awaited.remove(target)
            self._changed()

    async def next_change(self) -> None:
        """Wait until something has changed."""
        await self._change.wait()

    def _somebody_loads(self) -> bool:
        return any(fiber.state is State.LOADING and not fiber.lends_turn for fiber in self.fibers)

    def _next_ready(self) -> Fiber | None:
        return min(filter(self._is_ready, self.fibers), key=lambda fiber: fiber.path, default=None)

    def _is_ready(self, fiber: Fiber) -> bool:
        if fiber.state is not State.PENDING or fiber.error is not None or fiber.wants_change:
            return False
        # What a plugin has mounted is not applied any more once the plugin itself is on its way out.
        parent = fiber.parent
        stays = parent is None or (parent.state in (State.LOADING, State.ACTIVE) and not parent.wants_change)
        return stays and not fiber.missing

    # Services.

    def provider(self, fiber: Fiber, name: str, realms: dict[str, object] | None = None) -> Entry | None:
        """The service that ``fiber`` would get under ``name`` now; only an active provider counts, or itself."""
        realm = (fiber.realms if realms is None else realms).get(name)
        entry = fiber.ledger.find(SERVICE, realm, name)
        if entry is None or not (entry.fiber.state is State.ACTIVE or entry.fiber is fiber or entry.fiber.is_root):
            return None
        return entry

    def injected(self, fiber: Fiber, name: str, realms: dict[str, object]) -> Entry | None:
        """The service ``name`` as ``fiber`` may use it: provided by itself, injected by it or by an ancestor."""
        own = fiber.provided.get((realms.get(name), name))
        if own is not None:
            return own[0]
        holder: Fiber | None = fiber
        while holder is not None and not holder.is_root:
            if name in holder.spec.inject:
                if realms.get(name) != holder.realms.get(name):
                    return self.provider(holder, name, realms)
                return holder.uses.get(name)
            holder = holder.parent
        if fiber.is_root:
            entry = self.provider(fiber, name, realms)
            if entry is not None:
                return entry
        raise MissingInjectError(self._missing_inject(fiber, name))

    def consumers(self, provider: Fiber) -> list[Fiber]:
        """The fibers that use a service of ``provider``, last in order first."""
        users = [
            fiber
            for fiber in self.fibers
            if fiber is not provider and any(entry and entry.fiber is provider for entry in fiber.uses.values())
        ]
        return sorted(users, key=lambda fiber: fiber.path, reverse=True)

    def service_names(self) -> list[str]:
        """The services that are there."""
        return sorted({str(entry.key) for fiber in (self.root, *self.fibers) for entry, _ in fiber.provided.values()})

    def circle_of(self, fiber: Fiber) -> list[str]:
        """The plugins that wait for one another in a circle with ``fiber``, as far as they say what they provide."""
        offers = {name: other for other in self.fibers for name in other.spec.provides}
        seen: set[Fiber] = set()

        def search(at: Fiber, way: list[Fiber]) -> list[Fiber]:
            seen.add(at)
            for other in filter(None, map(offers.get, at.missing)):
                if other is fiber:
                    return [*way, other]
                if other not in seen and (found := search(other, [*way, other])):
                    return found
            return []

        return [member.id for member in search(fiber, [fiber])]

    def _services_changed(self) -> None:
        """Restart each consumer whose service is another one now, or gone, or has come."""
        for fiber in self.fibers:
            if fiber.state in (State.LOADING, State.ACTIVE) and any(self._stale(fiber, name) for name in fiber.uses):
                fiber.restart()
        self._changed()

    def _stale(self, fiber: Fiber, name: str) -> bool:
        used, now = fiber.uses[name], self.provider(fiber, name)
        if used is now or (used is None and now is not None and _rests_on(now.fiber, fiber)):
            # To take up a service that rests on the fiber itself would take it away again, for ever.
            return False
        # A provider that unloads sees to its consumers itself, one after the other.
        return used is None or used.fiber.state is not State.UNLOADING

    def _missing_inject(self, fiber: Fiber, name: str) -> str:
        close = self.near_services(name)
        near = "".join(f" (did you mean {other!r}?)" for other in close)
        if self.closed:
            return f"the host is closed, and the service {name!r} with it; use it inside 'async with open_host(…)'"
        if fiber.is_root:
            return f"the host has no service {name!r}{near}; load a plugin that provides it"
        (meant,) = close or [name]
        injected = [*fiber.spec.inject]
        line = f"inject = {[*injected, meant]!r}" if meant not in injected else f"ctx.{meant}"
        return f"plugin {fiber.id!r} uses the service {name!r}{near}, which it does not inject; write {line}"

    def near_services(self, name: str) -> list[str]:
        """The service that somebody who wrote ``name`` may have meant, if there is one."""
        names = self.service_names()
        return [] if name in names else difflib.get_close_matches(name, names, 1)

    @property
    def closed(self) -> bool:
        """Whether everything has been unwound for good."""
        return self.root.state is State.DISPOSED

    # Unloading.

    def add_drainer(self, drainer: Drainer) -> Callable[[], None]:
        """Have ``drainer`` awaited whenever a fiber unloads, after its registrations have been withdrawn."""
        self._drainers[drainer] = None

        def undo() -> None:
            self._drainers.pop(drainer, None)

        return undo

    def withdraw(self, fiber: Fiber) -> None:
        """Take all that a fiber has registered out of force, in one step."""
        fiber.ledger.withdraw(fiber)

    async def drain(self, fiber: Fiber) -> None:
        """Wait until nothing that is under way uses the fiber any more."""
        for drainer in list(self._drainers):
            try:
                await drainer(fiber)
            except Exception:
                _log.exception("waiting for what uses plugin %r failed; it unloads all the same", fiber.id)

    async def close(self) -> None:
        """Unwind everything, last first."""
        self.root.closing = True
        self.root.dispose()
        while self.root.state is not State.DISPOSED:
            await self.next_change()

    # Scopes.

    def close_scope(self, handle: ScopeHandle) -> list[ScopeHandle]:
        """End the scope that a handle owns and let everybody who keeps something for it know.

        What was registered for it is out of force at once, so that a new scope under the same key begins empty. Gives
        the handles that own the scopes below, which end with it, the lowest first.
        """
        closed = self.scopes.close(handle)
        for key in [below.key for below in closed]:
            self.ledger.withdraw_scope(key)
            self.events.forget_scope(key)
            self.ledger.touch("scope")
            for watcher in tuple(self._scope_watchers):
                watcher(key)
        return [below for below in closed if below is not handle]

    def watch_scopes(self, watcher: Callable[[Hashable], None]) -> Callable[[], None]:
        """Call ``watcher`` with the key of every scope that ends; give back the undo."""
        self._scope_watchers[watcher] = None

        def undo() -> None:
            self._scope_watchers.pop(watcher, None)

        return undo

    # Changes.

    def escalate(self, error: BaseException) -> None:
        """Let an error that no plugin may contain end the host; it comes out of ``async with``."""
        self.nursery.start_soon(_raise, error)

    def state_changed(self, fiber: Fiber, old: State) -> None:
        """Tell whoever watches, and look again at services and turns."""
        self._update_gate()
        self._services_changed()
        if not fiber.is_root:
            emit(self.events.listeners("plugin/state"), fiber, str(old))

    def _update_gate(self) -> None:
        """Note the first fiber, in order, that must be active and is not."""
        waiting = [fiber for fiber in self.fibers if not fiber.optional and fiber.state is not State.ACTIVE]
        self.closed_by = min(waiting, key=lambda fiber: fiber.path, default=None)

    def _changed(self) -> None:
        self._change.set()
        self._change = trio.Event()

    def _free_id(self, wanted: str) -> str:
        taken = {fiber.id for fiber in self.fibers}
        if wanted not in taken:
            return wanted
        return next(name for n in range(2, len(taken) + 3) if (name := f"{wanted}#{n}") not in taken)


async def _raise(error: BaseException) -> None:
    raise error


def _rests_on(fiber: Fiber, base: Fiber) -> bool:
    """Whether ``fiber`` would go if ``base`` went: it is below it, or uses what rests on it."""
    found = [fiber]
    for member in found:  # The list grows while it is walked.
        if member is base:
            return True
        near = [member.parent, *(entry.fiber for entry in member.uses.values() if entry is not None)]
        found += [other for other in near if other is not None and other not in found]
    return False


def take_as_it_is(spec: PluginSpec, config: Any) -> Any:
    """The configuration of a kernel without a loader: the plugin gets what it was mounted with."""
    return config


_ROOT = PluginSpec(source=None, name="root", inject={}, config_type=None, apply=None, apply_takes_config=False)


class open_kernel:  # noqa: N801  # used like a function: ``async with open_kernel() as ctx``
    """Open a kernel for the body of an ``async with``; gives the root context, and unwinds everything at the end."""

    def __init__(self, *, configure: Configure = take_as_it_is, teardown_timeout: float = 10.0) -> None:
        self._configure = configure
        self._teardown_timeout = teardown_timeout
        self._manager: Any = None
        self._nursery: trio.Nursery
        self._kernel: Kernel

    async def __aenter__(self) -> Context:
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        self._kernel = Kernel(self._nursery, self._configure, self._teardown_timeout)
        self._nursery.start_soon(self._kernel.root.run, name="root plugin")
        self._nursery.start_soon(self._kernel.coordinate, name="plugin turns")
        try:
            with trio.CancelScope(shield=True):
                while self._kernel.root.state is not State.ACTIVE:
                    await self._kernel.next_change()
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise
        return self._kernel.root.ctx

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with trio.CancelScope(shield=True):
                await self._kernel.close()
        finally:
            # Also when a second interrupt ends the wait: the nursery waits for the runners, which end by themselves.
            self._nursery.cancel_scope.cancel()
            await self._leave_nursery()

    async def _leave_nursery(self) -> None:
        """The body's own error goes on as it is; the nursery reports what its tasks did, a single error unwrapped."""
        try:
            await self._manager.__aexit__(None, None, None)
        except BaseExceptionGroup as group:
            if len(group.exceptions) != 1:
                raise
            raise group.exceptions[0] from None
