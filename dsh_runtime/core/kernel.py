"""The kernel: one root, and the house of all that is in force."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import trio

from dsh_runtime.core.context import Context
from dsh_runtime.core.errors import ServiceError
from dsh_runtime.core.events import EventTable, emit
from dsh_runtime.core.fiber import Fiber, RootFiber, current_fiber
from dsh_runtime.core.house import House, Retired, provider_of
from dsh_runtime.core.ledger import Entry, Ledger
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.plugins import PluginSpec, read_plugin
from dsh_runtime.core.scopes import ScopeHandle, ScopeTree
from dsh_runtime.core.services import SERVICE

if TYPE_CHECKING:
    from dsh_runtime.core.staging import Stage

_log = logging.getLogger("dsh.kernel")

Configure = Callable[[PluginSpec, Any], Any]
Drainer = Callable[[Fiber], Awaitable[None]]


class MissingInjectError(ServiceError, AttributeError):
    """A plugin uses a service that it does not inject."""


class Hold:
    """Calls wait at the gate for a plugin that is reloaded."""

    def __init__(self, fiber: Fiber) -> None:
        self.fiber = fiber
        self._woken = trio.Event()

    def wake(self) -> None:
        """Have all who wait look again."""
        self._woken.set()
        self._woken = trio.Event()

    async def wait(self) -> None:
        """Wait until it is time to look again."""
        await self._woken.wait()


class Kernel(House):
    """What all fibers of one host share, and the house of those that are in force. Made by :func:`open_kernel`."""

    def __init__(self, nursery: trio.Nursery, configure: Configure, teardown_timeout: float) -> None:
        ledger = Ledger()
        super().__init__(ledger, EventTable.of_host(ledger), ScopeTree())
        self.retired = Retired(self)
        self.nursery = nursery
        self.configure = configure
        self.teardown_timeout = teardown_timeout
        #: The first fiber, in order, that must be active and is not.
        self.closed_by: Fiber | None = None
        #: Where new versions are applied aside at the moment.
        self.stages: dict[Stage, None] = {}
        #: For whom calls wait at the gate.
        self.held: Hold | None = None
        self._drainers: dict[Drainer, None] = {}
        self._scope_watchers: dict[Callable[[Hashable], None], None] = {}
        self.state_watchers: dict[Callable[[Fiber, State], None], None] = {}
        self._change = trio.Event()
        self._ids: dict[str, Fiber] = {}
        self.root = RootFiber(self, None, _ROOT, "root")
        ledger.watch(SERVICE, self.service_entries_changed)

    # Mounting.

    def mount(
        self,
        ctx: Context,
        plugin: Any,
        config: Any,
        *,
        fiber_id: str | None,
        optional: bool,
        path: tuple[int, ...] | None = None,
    ) -> Fiber:
        """Make a fiber below ``ctx``, in its house; its plugin is applied when its turn comes.

        It stands at ``path`` in every order, or else behind what ``ctx`` has registered so far.
        """
        spec = read_plugin(plugin)
        house = ctx.fiber.house
        fiber = Fiber(self, ctx, spec, house.free_id(fiber_id or spec.name), house, path)
        fiber.optional = fiber.optional or optional
        step = ctx.stack.add(fiber.end, f"plugin {fiber.id!r}", bounded=False)
        fiber.mounted_as = (ctx.stack, step)
        ctx.fiber.children[fiber] = None
        self.launch(fiber, config)
        return fiber

    def launch(self, fiber: Fiber, config: Any) -> None:
        """Have a new fiber live in its house."""
        fiber.set_config(config)
        fiber.house.welcome(fiber)
        self.nursery.start_soon(fiber.run, name=f"plugin {fiber.id}")
        self.something_changed()

    def welcome(self, fiber: Fiber) -> None:
        """A fiber comes to be in force, or is to be."""
        super().welcome(fiber)
        self._ids[fiber.id] = fiber
        self._update_gate()

    def dismiss(self, fiber: Fiber) -> None:
        """A fiber is in force no more."""
        super().dismiss(fiber)
        if self._ids.get(fiber.id) is fiber:
            del self._ids[fiber.id]
        self._update_gate()

    def free_id(self, wanted: str) -> str:
        """An id that nobody has."""
        return first_free(wanted, self.holder_of)

    def holder_of(self, wanted: str) -> Fiber | None:
        """Who has this id."""
        return self._ids.get(wanted)

    # Turns.

    @contextlib.contextmanager
    def waiting_for(self, target: Fiber) -> Iterator[None]:
        """Let others be applied while the caller's fiber, if it is being applied, waits for ``target`` to rest."""
        fiber = current_fiber.get()
        if fiber is None or fiber.kernel is not self or fiber.state is not State.LOADING:
            yield
            return
        fiber._awaited.append(target)
        self.something_changed()
        try:
            yield
        finally:
            fiber._awaited.remove(target)
            self.something_changed()

    def something_changed(self) -> None:
        """Wake whoever waits in :meth:`next_change`."""
        self._change.set()
        self._change = trio.Event()

    async def next_change(self) -> None:
        """Wait until something has changed."""
        await self._change.wait()

    # Services.

    def services_changed(self, names: Iterable[str]) -> None:
        """Restart each consumer for whom a service is another one now, those that are applied aside included."""
        changed = tuple(names)
        super().services_changed(changed)
        for stage in tuple(self.stages):
            stage.services_changed(changed)

    def consumers(self, provider: Fiber) -> list[Fiber]:
        """The fibers that use a service of ``provider``, also aside and on their way out; last in order first."""
        found = super().consumers(provider)
        for house in (*self.stages, self.retired):
            found += house.consumers(provider)
        return sorted(found, key=lambda fiber: fiber.path, reverse=True)

    def provider(self, fiber: Fiber, name: str, realms: dict[str, object] | None = None) -> Entry | None:
        """The service that ``fiber`` would get under ``name`` now; only an active provider counts, or itself."""
        return provider_of(fiber, name, realms)

    def injected(self, fiber: Fiber, name: str, realms: dict[str, object]) -> Entry | None:
        """The service ``name`` as ``fiber`` may use it: provided by itself, injected by it or by an ancestor."""
        own = fiber.provided.get((realms.get(name), name))
        if own is not None:
            return own[0]
        holder: Fiber | None = fiber
        while holder is not None and not holder.is_root:
            if name in holder.spec.inject:
                if realms.get(name) != holder.realms.get(name):
                    return provider_of(holder, name, realms)
                return holder.uses.get(name)
            holder = holder.parent
        if fiber.is_root:
            entry = provider_of(fiber, name, realms)
            if entry is not None:
                return entry
        raise MissingInjectError(self._missing_inject(fiber, name))

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

    async def drain(self, fiber: Fiber) -> None:
        """Wait until nothing that is under way uses the fiber any more."""
        for drainer in list(self._drainers):
            try:
                await drainer(fiber)
            except Exception:
                _log.exception("waiting for what uses plugin %r failed; it unloads all the same", fiber.id)

    async def close(self) -> None:
        """Unwind everything, last first."""
        for stage in tuple(self.stages):
            stage.abandon()
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

    def watch_states(self, watcher: Callable[[Fiber, State], None]) -> Callable[[], None]:
        """Call ``watcher`` with every fiber that changes its state, wherever it lives, and its old one.

        Gives back the undo. Unlike ``plugin/state`` this is also told of what comes and goes beside what is in force.
        """
        self.state_watchers[watcher] = None

        def undo() -> None:
            self.state_watchers.pop(watcher, None)

        return undo

    def escalate(self, error: BaseException) -> None:
        """Let an error that no plugin may contain end the host; it comes out of ``async with``."""
        self.nursery.start_soon(_raise, error)

    def state_changed(self, fiber: Fiber, old: State) -> None:
        """Look again at services, turns and the gate, and tell whoever watches."""
        super().state_changed(fiber, old)
        self._update_gate()
        if not fiber.is_root:
            self.tell_state(fiber, str(old))

    def tell_state(self, fiber: Fiber, previous: str) -> None:
        """Emit ``plugin/state``."""
        emit(self.events.listeners("plugin/state"), fiber, previous)

    @contextlib.contextmanager
    def holding_calls(self, fiber: Fiber) -> Iterator[None]:
        """Have calls wait at the gate while ``fiber`` is reloaded; those under way, and their sub-calls, go on."""
        held = self.held = Hold(fiber)
        self._update_gate()
        try:
            yield
        finally:
            self.held = None
            self._update_gate()
            held.wake()

    def _update_gate(self) -> None:
        self.closed_by = self.held.fiber if self.held is not None else self.turns.inactive


def first_free(wanted: str, taken: Callable[[str], object]) -> str:
    """``wanted``, or the first of ``wanted#2``, ``wanted#3``, ... that is not taken."""
    names = itertools.chain([wanted], (f"{wanted}#{number}" for number in itertools.count(2)))
    return next(name for name in names if not taken(name))


async def _raise(error: BaseException) -> None:
    raise error


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
