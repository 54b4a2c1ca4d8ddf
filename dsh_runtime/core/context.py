"""Contexts: what a plugin gets. A context knows whose registrations it makes, and for which scope."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Generator, Hashable
from typing import TYPE_CHECKING, Any

import trio

from dsh_runtime.core.effects import EffectStack, is_ordinary, raise_all
from dsh_runtime.core.errors import ServiceError
from dsh_runtime.core.events import FIRST, ORDINARY, Listener, emit, listener_table, waterfall
from dsh_runtime.core.house import provider_of
from dsh_runtime.core.ledger import Entry
from dsh_runtime.core.scopes import ScopeHandle, ScopeKey
from dsh_runtime.core.services import SERVICE, bind

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber


class Context:
    """The services that a plugin may use, and the owner of all that it registers.

    Every method that registers gives back the undo of exactly that; calling it twice is the same as once. What is not
    undone early is undone when the plugin unloads, last first.
    """

    def __init__(self, fiber: Fiber, scope: Hashable | None, stack: EffectStack, realms: dict[str, object]) -> None:
        self.fiber = fiber
        self.scope_key = scope
        self.realms = realms
        self.stack = stack
        self._bound: dict[str, tuple[Entry, Any]] = {}

    @property
    def logger(self) -> logging.Logger:
        """The plugin's logger. (Made on demand: logging keeps every logger for good.)"""
        return logging.getLogger(f"dsh.plugin.{self.fiber.id}")

    @property
    def root(self) -> Context:
        """The host's own context."""
        return self.fiber.kernel.root.ctx

    # Services.

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        entry = self.fiber.kernel.injected(self.fiber, name, self.realms)
        return self._bind(name, entry) if entry is not None else None

    def get(self, name: str) -> Any:
        """A service by name, declared or not; ``None`` while it is absent."""
        entry = provider_of(self.fiber, name, self.realms)
        return self._bind(name, entry) if entry is not None else None

    def provide(self, name: str, value: Any) -> Callable[[], Any]:
        """Offer ``value`` as the service ``name`` while this plugin is active. Providing it again replaces it."""
        if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
            raise ServiceError(f"plugin {self.fiber.id!r} provides {name!r}; a service's name is an identifier")
        if hasattr(Context, name) or name in self.__dict__:
            raise ServiceError(f"plugin {self.fiber.id!r} provides {name!r}, which contexts need themselves; rename it")
        self.stack.check_open(f"service {name!r}")
        place = self.realms.get(name), name
        provided = self.fiber.provided
        if place in provided:
            provided[place][1]()
        self.fiber.offered[name] = None
        entry = self._enter(SERVICE, value, name, ORDINARY, place[0])

        def withdraw() -> None:
            self.fiber.ledger.remove(entry)
            if place in provided and provided[place][0] is entry:
                del provided[place]

        undo = self.stack.push(withdraw, f"service {name!r}")
        provided[place] = (entry, undo)
        return undo

    def isolate(self, name: str) -> Context:
        """A context for which the service ``name`` of outside does not exist; what it provides stays inside."""
        realms = {**self.realms, name: object()}
        return Context(self.fiber, self.scope_key, self.stack, realms)

    def _bind(self, name: str, entry: Entry) -> Any:
        bound = self._bound.get(name)
        if bound is None or bound[0] is not entry:
            bound = self._bound[name] = (entry, bind(entry.value, self))
        return bound[1]

    # Registrations.

    def on(self, event: str, fn: Callable[..., Any], *, prepend: bool = False) -> Callable[[], Any]:
        """Listen to an event. ``fn`` takes any of its arguments by their names; ``prepend`` puts it in front."""
        self.stack.check_open(f"a listener of {event!r}")
        return self._listen(self.fiber.house.events.listener(event, fn, self.fiber), FIRST if prepend else ORDINARY)

    def register(self, table: str, value: Any, *, key: Hashable | None = None) -> Callable[[], Any]:
        """Put ``value`` into one of a service's tables, for this context's scope; with ``key``, once per scope."""
        return self._register(table, value, key, ORDINARY, self.scope_key, f"{table} {key!r}" if key else table)

    def effect(self, fn: Callable[[], Any]) -> Callable[[], Any]:
        """Run a setup and keep its undo: the callable it returns, or those that a generator yields as it goes."""
        return self.stack.effect(fn, f"the effect {getattr(fn, '__qualname__', fn)}")

    def start_soon(self, fn: Callable[..., Awaitable[Any]], *args: Any) -> None:
        """Run a task in the plugin's own nursery; unloading cancels it and waits for it."""
        self.fiber.start_soon(self.stack, fn, args)

    def plugin(self, plugin: Any, config: Any = None, *, id: str | None = None, optional: bool = False) -> Fiber:
        """Mount a child plugin; it is applied later, in its turn. Give back its fiber."""
        self.stack.check_open(f"the plugin {plugin!r}")
        return self.fiber.kernel.mount(self, plugin, config, fiber_id=id, optional=optional)

    def add_hookspecs(self, namespace: Any) -> Callable[[], Any]:
        """Declare the events of a module or class of ``@hookspec`` functions, for as long as the plugin is loaded."""
        self.stack.check_open("hookspecs")
        return self.stack.push(self.fiber.house.events.declare(namespace, self.fiber), "hookspecs")

    def _register(
        self, table: str, value: Any, key: Hashable | None, band: int, scope: Hashable | None, label: str
    ) -> Callable[[], Any]:
        fiber = self.fiber
        self.stack.check_open(label)
        entry = self._enter(table, value, key, band, scope)
        return self.stack.push(lambda: fiber.ledger.remove(entry), label)

    def _enter(self, table: str, value: Any, key: Hashable | None, band: int, scope: Hashable | None) -> Entry:
        entry = Entry(self.fiber, table, scope, key, value, band, self.fiber.next_seq())
        self.fiber.ledger.add(entry)
        return entry

    def _listen(self, listener: Listener, band: int) -> Callable[[], Any]:
        scope = self.scope_key if listener.scoped else None
        label = f"a listener of {listener.event!r}"
        return self._register(listener_table(listener.event), listener, None, band, scope, label)

    # Scopes.

    def scope(self, key: Hashable | None = None, parent: Hashable | None = None) -> Scope:
        """Open a scope, or join one that is open. Without ``key`` a new opaque one is made."""
        self.stack.check_open("a scope")
        return Scope(self, key if key is not None else ScopeKey(), parent)

    # Events of one's own.

    def emit(self, event: str, *args: Any, scope: Hashable | None = None) -> None:
        """Tell every listener; what one raises is logged and harms nobody else."""
        house = self.fiber.house
        self._declared(event, "emit")
        emit(house.events.listeners(event, house.scopes.hearing(scope)), *args)

    async def waterfall(self, event: str, *args: Any, default: Any, scope: Hashable | None = None) -> Any:
        """Run a waterfall and give back its answer; ``default`` is what the end of the chain answers."""
        house = self.fiber.house
        declared = self._declared(event, "waterfall")
        listeners = house.events.listeners(event, house.scopes.hearing(scope))
        return await waterfall(declared, listeners, args, default)

    def _declared(self, event: str, mode: str) -> Any:
        declared = self.fiber.house.events.get(event, self.fiber.id)
        if declared.info.mode != mode:
            raise ServiceError(f"event {event!r} is dispatched as {mode}, but declared as {declared.info.mode}")
        return declared

    def __repr__(self) -> str:
        return f"<Context of {self.fiber.id}{f' for {self.scope_key!r}' if self.scope_key is not None else ''}>"


class Scope(ScopeHandle):
    """A scope as one plugin holds it: ``ctx`` registers for it, ``dispose()`` ends it.

    The first handle on a key owns the scope; a later one takes away only what was registered through it.
    """

    def __init__(self, ctx: Context, key: Hashable, parent: Hashable | None) -> None:
        super().__init__(ctx.fiber, key, parent, f"scope {key!r} of plugin {ctx.fiber.id!r}")
        self._kernel = ctx.fiber.kernel
        ctx.fiber.house.scopes.bind(self)
        self.ctx = Context(ctx.fiber, key, self.stack, ctx.realms)
        self._errors: list[BaseException] = []
        self._ended: trio.Event | None = None
        # Its unwinding has a deadline of its own, and so have the plugins that were mounted through it.
        self._step = ctx.stack.add(self.dispose, f"scope {key!r}", bounded=False)
        self._outer = ctx.stack

    def dispose(self) -> Awaitable[None]:
        """End the scope now; await what comes back to wait until everything of it is undone."""
        if self._ended is None:
            self._ended = trio.Event()
            self._end()
        return _Ending(self)

    def _end(self) -> None:
        """Close the key at once, so that no call slips in; only undo steps that wait are left to a task."""
        self.stack.closed = True
        inner = [*reversed(self.guests)]
        if self.joined is None:
            inner = [*self.fiber.house.close_scope(self), *inner]
        else:
            self.fiber.house.scopes.leave(self)
        ending = [handle.dispose() for handle in inner]
        if any(handle.stack.steps for handle in inner) or self.stack.unwind_ready(self._errors):
            self._kernel.nursery.start_soon(self._finish, ending)
        else:
            self._ended_now()

    async def _finish(self, ending: list[Awaitable[None]]) -> None:
        """Wait for the handles that end with this one, then undo what is left."""
        with trio.CancelScope(shield=True):
            for inner in ending:
                with contextlib.suppress(Exception, BaseExceptionGroup):  # The inner handle has logged it.
                    await inner
            self._errors += await self.stack.unwind(self._kernel.teardown_timeout)
        self._ended_now()

    def _ended_now(self) -> None:
        assert self._ended is not None
        self._outer.drop(self._step)
        self._ended.set()
        for error in self._errors:
            self.ctx.logger.error("undoing scope %r failed", self.key, exc_info=error)
            if not is_ordinary(error):
                self._kernel.escalate(error)


class _Ending:
    """Awaits the end of a scope; dropped, the scope ends all the same."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __await__(self) -> Generator[Any, Any, None]:
        return self._run().__await__()

    async def _run(self) -> None:
        assert self._scope._ended is not None
        await self._scope._ended.wait()
        raise_all(self._scope._errors, f"ending scope {self._scope.key!r}")
