"""Fibers: one running instance of a plugin, its states and its unwinding.

One task per fiber, the runner, carries out the latest wish: apply when the services are there and it is the fiber's
turn, unwind when disposal, an update, a lost service or a crash asks for it. Disposal is final: no later wish undoes
it. Runners are shielded: a host that is cancelled unwinds its fibers in order, last first, and is not torn down at
random.

Each life has a context and a stack of its own, so that what is kept from an earlier life cannot register in the next.

Unload order: what the fiber has registered is withdrawn, its services included; calls that still use it come to rest;
the plugins that use its services unload; then its own tasks, children and effects go, one after the other, last first.
"""

from __future__ import annotations

import contextvars
import inspect
import itertools
import logging
from collections.abc import Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import trio

from dsh_runtime.core import lifecycle
from dsh_runtime.core.context import Context
from dsh_runtime.core.effects import EffectStack, Step, is_ordinary, may_be_the_users, raise_all
from dsh_runtime.core.errors import DeadlockError, DisposedError, PluginError, TeardownTimeoutError
from dsh_runtime.core.house import House, provider_of
from dsh_runtime.core.ledger import Entry, Ledger
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.plugins import PluginSpec
from dsh_runtime.core.tasks import BackgroundTask

if TYPE_CHECKING:
    from dsh_runtime.core.kernel import Kernel

_log = logging.getLogger("dsh.fibers")

#: The fiber whose code runs in this task, where the core knows it.
current_fiber: contextvars.ContextVar[Fiber | None] = contextvars.ContextVar("dsh_current_fiber", default=None)


class Fiber:
    """One running instance of a plugin. Made by ``ctx.plugin()``."""

    def __init__(
        self,
        kernel: Kernel,
        parent: Context | None,
        spec: PluginSpec,
        fiber_id: str,
        house: House | None = None,
        path: tuple[int, ...] | None = None,
    ) -> None:
        self.kernel = kernel
        #: Where it lives: in force, staged beside what is in force, or replaced.
        self.house: House = house if house is not None else kernel
        self.parent = parent.fiber if parent is not None else None
        self.spec = spec
        self.id = fiber_id
        self.config: Any = None
        self.settings: Any = None
        #: Whether a newer version has taken its place.
        self.replaced = False
        self.optional: bool = self.parent.optional if self.parent is not None else False
        #: Its position in the tree: one number for each level.
        self.path: tuple[int, ...] = path if path is not None else self._next_path()
        self.state = State.PENDING
        self.error: BaseException | None = None
        self.children: dict[Fiber, None] = {}
        self.entries: dict[Entry, None] = {}
        self.uses: dict[str, Entry | None] = {}
        #: The names of the services that it has provided in this life.
        self.offered: dict[str, None] = {}
        #: What it provides, by realm and name, with the undo of each.
        self.provided: dict[tuple[object, str], tuple[Entry, Callable[[], Any]]] = {}
        self.realms: dict[str, object] = dict(parent.realms) if parent is not None else {}
        self.mounted_as: tuple[EffectStack, Step] | None = None
        #: The task that runs its apply(), for who wants to see where it stands.
        self.runner: trio.lowlevel.Task | None = None
        self._seq = itertools.count()
        self._wants_disposal = False
        self._wants_restart = False
        self._crash: BaseException | None = None
        self._turn = False
        self._wake = trio.Event()
        #: Whom its code waits for.
        self._awaited: list[Fiber] = []
        self._apply_scope: trio.CancelScope | None = None
        self._undo_errors: list[BaseException] = []
        self._scope_key = parent.scope_key if parent is not None else None
        self._begin_life()
        self.stack.closed = True

    # What others ask of a fiber.

    @property
    def name(self) -> str:
        """The plugin's own name."""
        return self.spec.name

    @property
    def is_root(self) -> bool:
        """Whether this is the host's own fiber."""
        return self.parent is None

    @property
    def ledger(self) -> Ledger:
        """The ledger that it writes to."""
        return self.house.ledger

    @property
    def missing(self) -> list[str]:
        """The required services that are not there."""
        return [name for name, need in self.spec.inject.items() if need and provider_of(self, name) is None]

    def next_seq(self) -> int:
        """The next place in this fiber's own order."""
        return next(self._seq)

    @property
    def wants_change(self) -> bool:
        """Whether a wish has not been carried out yet."""
        return self._wants_disposal or self._wants_restart

    @property
    def lends_turn(self) -> bool:
        """Whether its code waits for others while it is applied, so that they may be applied meanwhile."""
        return bool(self._awaited) and not any(fiber._at_rest() for fiber in self._awaited)

    async def wait(self) -> None:
        """Wait until the fiber has settled: active, disposed, or pending with nothing under way that could change it.

        Raises the original exception if it failed.
        """
        if not self._settled():
            self._check_not_own("the start")
        with self.kernel.waiting_for(self):
            while not self._settled():
                await self.kernel.next_change()
        if self.state is State.FAILED and self.error is not None:
            raise self.error

    def dispose(self) -> Wish:
        """Ask for the end of the fiber; await what comes back to wait for it. Twice is the same as once."""
        self._want(disposal=True)
        return Wish(self, "the disposal", self._until_disposed)

    def update(self, config: Any) -> Wish:
        """Ask for a restart with another config; a failed fiber tries again.

        A refused config raises at once and changes nothing.
        """
        if self._wants_disposal:
            raise DisposedError(f"plugin {self.id!r} is updated, but has been disposed; mount it again")
        settings = self.kernel.configure(self.spec, config)
        self.config, self.settings = config, settings
        self._want(restart=self.state is not State.PENDING or self.error is not None)
        return Wish(self, "the update", self.wait)

    def restart(self) -> None:
        """Ask for the fiber to be unwound and applied afresh."""
        if self.state in (State.LOADING, State.ACTIVE):
            self._want(restart=True)

    def give_up(self, error: BaseException) -> None:
        """Fail a fiber that is not done with ``apply``; what it has registered is unwound."""
        if self.state is State.LOADING and self._crash is None:
            self._crash = error
            self._poke()

    def set_config(self, config: Any) -> None:
        """Take the first config; a refused one fails the fiber before it is applied."""
        self.config = config
        try:
            self.settings = self.kernel.configure(self.spec, config)
        except Exception as error:
            self.error = error

    # The runner.

    async def run(self) -> None:
        """Carry out wishes until the fiber is disposed."""
        current_fiber.set(self)
        self.runner = trio.lowlevel.current_task()
        with trio.CancelScope(shield=True):
            if self.error is not None:
                self._fail(self.error)
            while self._turn or not self._wants_disposal:
                if self._turn:
                    await self._live()
                elif self.state is State.FAILED and self._wants_restart:
                    self._have_restarted()
                    self.error = None
                    self._set(State.PENDING)
                else:
                    await self._sleep()
            self._finish()

    def grant_turn(self) -> None:
        """Let the runner apply the plugin (the kernel grants one turn at a time, in order)."""
        self._turn = True
        self._use({name: provider_of(self, name) for name in self.spec.inject})
        self._set(State.LOADING)
        self._poke()

    async def _live(self) -> None:
        """One life: apply, stay active until disturbed, unwind."""
        self._turn = False
        self._crash = None
        self._begin_life()
        error = await self._apply()
        if error is None and not self._disturbed():
            self._set(State.ACTIVE)
        while error is None and not self._disturbed():
            await self._sleep()
        self._set(State.UNLOADING)
        await self._unwind()
        self._after_life(error if error is not None else self._crash)

    def _begin_life(self) -> None:
        self.offered = {}
        self.stack = EffectStack(f"plugin {self.id!r}")
        self.ctx = Context(self, self._scope_key, self.stack, self.realms)

    def _after_life(self, error: BaseException | None) -> None:
        if self._wants_disposal:
            if error is not None and error is not self._crash:
                _log.error("plugin %r failed while it was disposed: %r", self.id, error, exc_info=error)
        elif error is not None and not self._wants_restart:
            self._fail(error)
        else:
            self._have_restarted()
            self._set(State.PENDING)

    async def _apply(self) -> BaseException | None:
        """Run ``apply``; give back what it raised. A wish that comes meanwhile cancels it."""
        try:
            with trio.CancelScope() as self._apply_scope:
                if not self._disturbed():
                    self._carry_hooks()
                    await self._call_apply()
        except GeneratorExit:
            raise
        except BaseException as error:
            # Outside the scope: a group that mixes Cancelled with errors has lost its Cancelled by now.
            self._escalate(error)
            return error
        finally:
            self._apply_scope = None
        return None

    def _carry_hooks(self) -> None:
        """Register the plugin's ``@hookimpl`` functions; one that lacks the marker is refused."""
        events = self.house.events
        events.check_unmarked(self.spec.source, self.id)
        for listener, band in events.carrier_listeners(self.spec.hooks, self):
            self.ctx._listen(listener, band)

    async def _call_apply(self) -> None:
        apply = self.spec.apply
        if apply is None:
            return
        args = (self.ctx, self.settings) if self.spec.apply_takes_config else (self.ctx,)
        outcome = _applied(apply, args)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if inspect.isgenerator(outcome):
            self.stack.take_steps(outcome, "apply()")
        elif inspect.isasyncgen(outcome):
            raise PluginError(f"plugin {self.id!r} has an apply() that is an async generator; return its undo instead")
        elif callable(outcome):
            self.stack.push(outcome, "the undo that apply() returned")

    async def _unwind(self) -> None:
        """Undo everything, in the order that the module's docstring gives."""
        self.stack.closed = True
        self.ledger.withdraw(self)
        await self.kernel.drain(self)
        errors = await self._let_consumers_go()
        errors += await self.stack.unwind(self.kernel.teardown_timeout)
        self._use({})
        for error in errors:
            _log.error("undoing plugin %r failed", self.id, exc_info=error)
            self._escalate(error)
        self._undo_errors = errors

    async def _let_consumers_go(self) -> list[BaseException]:
        """Have the plugins that use this one's services unload, one after the other, last in order first."""
        errors: list[BaseException] = []
        for consumer in self.house.consumers(self):
            consumer.restart()
            try:
                await self._outlast(consumer, lambda consumer=consumer: not consumer.uses_of(self))  # type: ignore[misc]
            except TeardownTimeoutError as error:
                errors.append(error)
        return errors

    def uses_of(self, provider: Fiber) -> bool:
        """Whether the fiber still uses a service of ``provider``."""
        return any(entry is not None and entry.fiber is provider for entry in self.uses.values())

    async def end(self) -> None:
        """Dispose the fiber as a step of its parent's unwinding."""
        self.dispose()
        assert self.parent is not None
        await self.parent._outlast(self, lambda: self.state is State.DISPOSED)
        raise_all(self._undo_errors, f"unloading plugin {self.id!r}")

    async def _outlast(self, other: Fiber, done: Callable[[], bool]) -> None:
        """Wait, while unloading, for a fiber that has been asked to unload.

        Its teardown has a deadline of its own; only an ``apply`` that goes on although it is cancelled is given up.
        These waits form no circle: a life rests only on lives that began before it, its parent's and its providers'.
        """
        with trio.move_on_after(self.kernel.teardown_timeout):
            while other.state is State.LOADING and not done():
                await self.kernel.next_change()
        if other.state is State.LOADING and not done():
            raise TeardownTimeoutError(
                f"plugin {other.id!r} goes on with apply() although it is cancelled; let apply() end when cancelled"
            )
        while not done():
            await self.kernel.next_change()

    # Background tasks.

    def start_soon(self, stack: EffectStack, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        """Run a task that is cancelled and awaited in its place on ``stack``; its crash fails the fiber alone."""
        stack.check_open(f"the task {fn!r}")
        self.house.begin(BackgroundTask(self, stack, fn, args))

    async def run_task(
        self, scope: trio.CancelScope, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...], life: Context
    ) -> None:
        """Run a background task to its end, within its scope."""
        current_fiber.set(self)
        try:
            with scope:
                await fn(*args)
        except (trio.Cancelled, GeneratorExit):
            raise
        except BaseException as error:
            self._crashed(error, fn, life)

    def _crashed(self, error: BaseException, fn: object, life: Context) -> None:
        _log.error("a background task of plugin %r crashed: %r", self.id, fn, exc_info=error)
        self._escalate(error)
        if self._crash is None and self.ctx is life and self.state is not State.UNLOADING:
            self._crash = error
            self._poke()

    def _escalate(self, error: BaseException) -> None:
        """Hand on what no plugin may contain: a keyboard interrupt of the user's ends the host."""
        if not is_ordinary(error) and may_be_the_users():
            self.kernel.escalate(error)

    # Small steps.

    def _next_path(self) -> tuple[int, ...]:
        return (*self.parent.path, self.parent.next_seq()) if self.parent is not None else ()

    def _want(self, *, disposal: bool = False, restart: bool = False) -> None:
        self._wants_disposal = self._wants_disposal or disposal
        self._wants_restart = self._wants_restart or restart
        self.house.wished(self)
        self._poke()

    def _have_restarted(self) -> None:
        self._wants_restart = False
        self.house.wished(self)

    def _use(self, services: dict[str, Entry | None]) -> None:
        self.house.index_uses(self, services)
        self.uses = services

    def _disturbed(self) -> bool:
        return self._wants_disposal or self._wants_restart or self._crash is not None

    def _settled(self) -> bool:
        if self.state is State.PENDING:
            return not self._wants_disposal and not self.house.turns.busy()
        return self._at_rest()

    def _at_rest(self) -> bool:
        if self.state in (State.ACTIVE, State.FAILED):
            return not self._disturbed() or (self.state is State.FAILED and not self.wants_change)
        return self.state is State.DISPOSED

    def _poke(self) -> None:
        self._wake.set()
        if self._apply_scope is not None and self._disturbed():
            self._apply_scope.cancel()

    async def _sleep(self) -> None:
        await self._wake.wait()
        self._wake = trio.Event()

    def _fail(self, error: BaseException) -> None:
        self.error = error
        self._set(State.FAILED)
        self.house.failed(self, error)

    def _finish(self) -> None:
        self.stack.closed = True
        self._set(State.DISPOSED)
        self.runner = None
        if self.mounted_as is not None:
            stack, step = self.mounted_as
            stack.drop(step)
        self.house.dismiss(self)
        if self.parent is not None:
            self.parent.children.pop(self, None)
        self.kernel.something_changed()

    def _set(self, state: State) -> None:
        if state is self.state:
            return
        old, self.state = self.state, lifecycle.check(self.state, state)
        if state is State.ACTIVE:
            self.error = None
        self.house.state_changed(self, old)
        for watcher in tuple(self.kernel.state_watchers):
            watcher(self, old)

    async def _until_disposed(self) -> None:
        with self.kernel.waiting_for(self):
            while self.state is not State.DISPOSED:
                await self.kernel.next_change()
        raise_all(self._undo_errors, f"unloading plugin {self.id!r}")

    def _check_not_own(self, what: str) -> None:
        for fiber in _lineage(current_fiber.get()):
            if fiber is self or (fiber.state is State.UNLOADING and fiber._uses_below(self)):
                raise DeadlockError(
                    f"plugin {fiber.id!r} waits for {what} of plugin {self.id!r}, which waits for {fiber.id!r}; "
                    "ask for it without awaiting"
                )

    def _uses_below(self, provider: Fiber) -> bool:
        """Whether the end of ``provider`` waits for the fiber, which uses its services or those of plugins below it."""
        return any(entry is not None and provider in _lineage(entry.fiber) for entry in self.uses.values())

    def __repr__(self) -> str:
        return f"<Fiber {self.id} {self.state}>"


class Wish:
    """Something that a fiber was asked for; it happens anyway, and awaiting it waits until it has."""

    __slots__ = ("_fiber", "_wait", "_what")

    def __init__(self, fiber: Fiber, what: str, wait: Callable[[], Awaitable[None]]) -> None:
        self._fiber = fiber
        self._what = what
        self._wait = wait

    def __await__(self) -> Generator[Any, Any, None]:
        return self._run().__await__()

    async def _run(self) -> None:
        self._fiber._check_not_own(self._what)
        await self._wait()


def _applied(apply: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call ``apply``. Its ``GeneratorExit`` is an error like any other; what comes of an ``await`` may be trio's."""
    try:
        return apply(*args)
    except GeneratorExit as error:
        raise PluginError("apply() raised GeneratorExit").with_traceback(error.__traceback__) from error


def _lineage(fiber: Fiber | None) -> Iterator[Fiber]:
    """A fiber and its ancestors."""
    while fiber is not None:
        yield fiber
        fiber = fiber.parent


class RootFiber(Fiber):
    """The host's own fiber: always there; disposing it unwinds everything and leaves a root that can be used again."""

    closing = False
    lives = 0

    async def run(self) -> None:
        """Live again after each disposal, until the host closes."""
        current_fiber.set(self)
        with trio.CancelScope(shield=True):
            while not self.closing:
                self.grant_turn()
                await self._live()
                self._wants_disposal = False
                self._wants_restart = False
                self.lives += 1
                self._set(State.PENDING)
            self._finish()

    def _begin_life(self) -> None:
        """The root's context is the embedding application's: it stays the same through all lives."""
        if not hasattr(self, "stack"):
            super()._begin_life()
        self.stack.closed = False

    def _crashed(self, error: BaseException, fn: object, life: Context) -> None:
        """What the embedding application starts on the root is its own: a crash comes out where the host is open."""
        self.kernel.escalate(error)

    async def _until_disposed(self) -> None:
        lives = self.lives
        while self.lives == lives and self.state is not State.DISPOSED:
            await self.kernel.next_change()
        errors, self._undo_errors = self._undo_errors, []
        raise_all(errors, "unloading the host")

    def _check_not_own(self, what: str) -> None:
        """Whoever runs no plugin may wait for the root."""
        if current_fiber.get() is not self:
            super()._check_not_own(what)
