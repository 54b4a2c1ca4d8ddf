"""Fibers: one running instance of a plugin, its states and its unwinding.

One task per fiber, the runner, carries out the latest wish: apply when the services are there and it is the fiber's
turn, unwind when disposal, an update, a lost service or a crash asks for it. Runners are shielded: a host that is
cancelled unwinds its fibers in order, last first, and is not torn down at random.

Unload order: what the fiber has registered is withdrawn, its services included; calls that still use it come to rest;
the plugins that use its services unload; then its own tasks, children and effects go, one after the other, last first.
"""

from __future__ import annotations

import contextvars
import inspect
import itertools
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

import trio

from dsh_runtime.core import lifecycle
from dsh_runtime.core.context import Context
from dsh_runtime.core.effects import EffectStack, Step, raise_all
from dsh_runtime.core.errors import DeadlockError
from dsh_runtime.core.ledger import Entry, Ledger
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.plugins import PluginSpec

if TYPE_CHECKING:
    from dsh_runtime.core.kernel import Kernel

_log = logging.getLogger("dsh.fibers")

#: The fiber whose code runs in this task, where the core knows it.
current_fiber: contextvars.ContextVar[Fiber | None] = contextvars.ContextVar("dsh_current_fiber", default=None)


class Fiber:
    """One running instance of a plugin. Made by ``ctx.plugin()``."""

    def __init__(self, kernel: Kernel, parent: Context | None, spec: PluginSpec, fiber_id: str) -> None:
        self.kernel = kernel
        self.parent = parent.fiber if parent is not None else None
        self.spec = spec
        self.id = fiber_id
        self.config: Any = None
        self.settings: Any = None
        self.optional = self.parent.optional if self.parent is not None else False
        self.path: tuple[int, ...] = (*self.parent.path, self.parent.next_seq()) if self.parent is not None else ()
        self.state = State.PENDING
        self.error: BaseException | None = None
        self.children: dict[Fiber, None] = {}
        self.entries: dict[Entry, None] = {}
        self.ledger: Ledger = kernel.ledger
        self.uses: dict[str, Entry | None] = {}
        self.provided: dict[tuple[object, str], Entry] = {}
        self.stack = EffectStack(f"plugin {fiber_id!r}")
        self.stack.closed = True
        self.realms: dict[str, object] = dict(parent.realms) if parent is not None else {}
        self.lends_turn = 0
        self.mounted_as: tuple[EffectStack, Step] | None = None
        self._seq = itertools.count()
        self._wants_disposal = False
        self._wants_restart = False
        self._crash: BaseException | None = None
        self._turn = False
        self._wake = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._apply_scope: trio.CancelScope | None = None
        self._undo_errors: list[BaseException] = []
        self.ctx = Context(self, parent.scope_key if parent is not None else None, self.stack, self.realms)

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
    def missing(self) -> list[str]:
        """The required services that are not there."""
        return [name for name, need in self.spec.inject.items() if need and self.kernel.provider(self, name) is None]

    def next_seq(self) -> int:
        """The next place in this fiber's own order."""
        return next(self._seq)

    @property
    def wants_change(self) -> bool:
        """Whether a wish has not been carried out yet."""
        return self._wants_disposal or self._wants_restart

    async def wait(self) -> None:
        """Wait until the fiber has settled: active, disposed, or pending with nothing under way that could change it.

        Raises the original exception if it failed.
        """
        self._check_not_own("wait for itself")
        with self.kernel.lending_turn():
            while not self._settled():
                await self.kernel.next_change()
        if self.state is State.FAILED and self.error is not None:
            raise self.error

    def dispose(self) -> Wish:
        """Ask for the end of the fiber; await what comes back to wait for it. Twice is the same as once."""
        self._wants_disposal = True
        self._poke()
        return Wish(self, "its own disposal", self._until_disposed)

    def update(self, config: Any) -> Wish:
        """Ask for a restart with another config; a failed fiber tries again.

        A refused config raises at once and changes nothing.
        """
        settings = self.kernel.configure(self.spec, config)
        self.config, self.settings = config, settings
        self._wants_restart = True
        self._poke()
        return Wish(self, "its own update", self.wait)

    def restart(self) -> None:
        """Ask for the fiber to be unwound and applied afresh."""
        if self.state in (State.LOADING, State.ACTIVE):
            self._wants_restart = True
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
        with trio.CancelScope(shield=True):
            if self.error is not None:
                self._fail(self.error)
            while not self._wants_disposal:
                if self._turn:
                    await self._live()
                elif self.state is State.FAILED and self._wants_restart:
                    self._wants_restart = False
                    self.error = None
                    self._set(State.PENDING)
                else:
                    await self._sleep()
            self._finish()

    def grant_turn(self) -> None:
        """Let the runner apply the plugin (the kernel grants one turn at a time, in order)."""
        self._turn = True
        self.uses = {name: self.kernel.provider(self, name) for name in self.spec.inject}
        self._set(State.LOADING)
        self._poke()

    async def _live(self) -> None:
        """One life: apply, stay active until disturbed, unwind."""
        self._turn = False
        self._wants_restart = False
        self._crash = None
        self.stack.closed = False
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                error = await self._apply()
                if error is None and not self._disturbed():
                    self._set(State.ACTIVE)
                while error is None and not self._disturbed():
                    await self._sleep()
                self._set(State.UNLOADING)
                await self._unwind()
                nursery.cancel_scope.cancel()
        finally:
            self._nursery = None
        self._after_life(error if error is not None else self._crash)

    def _after_life(self, error: BaseException | None) -> None:
        if self._wants_disposal:
            return
        if error is not None and not self._wants_restart:
            self._fail(error)
        else:
            self._wants_restart = False
            self._set(State.PENDING)

    async def _apply(self) -> BaseException | None:
        """Run ``apply``; give back what it raised. A wish that comes meanwhile cancels it."""
        with trio.CancelScope() as self._apply_scope:
            if self._disturbed():
                return None
            try:
                self.kernel.carry_hooks(self)
                await self._call_apply()
            except (Exception, SystemExit) as error:
                return error
        self._apply_scope = None
        return None

    async def _call_apply(self) -> None:
        apply = self.spec.apply
        if apply is None:
            return
        args = (self.ctx, self.settings) if self.spec.apply_takes_config else (self.ctx,)
        outcome = apply(*args)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if callable(outcome):
            self.stack.push(outcome, "the undo that apply() returned")

    async def _unwind(self) -> None:
        """Undo everything, in the order that the module's docstring gives."""
        deadline = trio.current_time() + self.kernel.teardown_timeout
        self.kernel.withdraw(self)
        await self.kernel.drain(self)
        errors: list[BaseException] = []
        for consumer in self.kernel.consumers(self):
            consumer.restart()
            with trio.move_on_at(deadline):
                await consumer.until_left(self)
        errors += await self.stack.unwind(max(deadline, trio.current_time()))
        self.stack.closed = True
        self.uses = {}
        for error in errors:
            _log.error("undoing plugin %r failed", self.id, exc_info=error)
        self._undo_errors += errors

    async def until_left(self, provider: Fiber) -> None:
        """Wait until the fiber uses nothing of ``provider`` any more."""
        while any(entry is not None and entry.fiber is provider for entry in self.uses.values()):
            await self.kernel.next_change()

    # Background tasks.

    def start_soon(self, stack: EffectStack, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        """Run a task that is cancelled and awaited in its place on ``stack``; its crash fails the fiber alone."""
        stack.check_open(f"the task {fn!r}")
        scope = trio.CancelScope()
        done = trio.Event()

        async def stop() -> None:
            scope.cancel()
            await done.wait()

        step = stack.add(stop, f"the task {getattr(fn, '__qualname__', fn)}")

        async def task() -> None:
            try:
                await self._background(scope, fn, args)
            finally:
                done.set()
                stack.drop(step)

        assert self._nursery is not None, "a fiber whose stack is open has a nursery"
        self._nursery.start_soon(task, name=f"{self.id}: {getattr(fn, '__qualname__', fn)}")

    async def _background(
        self, scope: trio.CancelScope, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...]
    ) -> None:
        current_fiber.set(self)
        try:
            with scope:
                await fn(*args)
        except (Exception, SystemExit) as error:
            self._crashed(error, fn)
        except BaseExceptionGroup as group:
            if group.split((Exception, SystemExit))[1] is not None:
                raise
            self._crashed(group, fn)

    def _crashed(self, error: BaseException, fn: object) -> None:
        _log.error("a background task of plugin %r crashed: %r", self.id, fn, exc_info=error)
        self._crash = error
        self._poke()

    # Small steps.

    def _disturbed(self) -> bool:
        return self._wants_disposal or self._wants_restart or self._crash is not None

    def _settled(self) -> bool:
        if self.state in (State.ACTIVE, State.FAILED):
            return not self._wants_restart and not self._wants_disposal
        if self.state is State.PENDING:
            return not self._wants_disposal and not self.kernel.busy()
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
        _log.error("plugin %r failed: %r", self.id, error, exc_info=error)

    def _finish(self) -> None:
        self.stack.closed = True
        self._set(State.DISPOSED)
        if self.mounted_as is not None:
            stack, step = self.mounted_as
            stack.drop(step)
        self.kernel.forget(self)

    def _set(self, state: State) -> None:
        if state is self.state:
            return
        old, self.state = self.state, lifecycle.check(self.state, state)
        if state is State.ACTIVE:
            self.error = None
        self.kernel.state_changed(self, old)

    async def _until_disposed(self) -> None:
        with self.kernel.lending_turn():
            while self.state is not State.DISPOSED:
                await self.kernel.next_change()
        raise_all(self._undo_errors, f"unloading plugin {self.id!r}")

    def _check_not_own(self, what: str) -> None:
        fiber = current_fiber.get()
        while fiber is not None:
            if fiber is self:
                raise DeadlockError(
                    f"plugin {self.id!r} waits for {what}, which waits for the plugin; ask for it without awaiting"
                )
            fiber = fiber.parent

    def __repr__(self) -> str:
        return f"<Fiber {self.id} {self.state}>"


class Wish:
    """Something that a fiber was asked for; it happens anyway, and awaiting it waits until it has."""

    __slots__ = ("_fiber", "_what", "_wait")

    def __init__(self, fiber: Fiber, what: str, wait: Callable[[], Awaitable[None]]) -> None:
        self._fiber = fiber
        self._what = what
        self._wait = wait

    def __await__(self) -> Generator[Any, Any, None]:
        return self._run().__await__()

    async def _run(self) -> None:
        self._fiber._check_not_own(self._what)
        await self._wait()


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
                self.lives += 1
                self._set(State.PENDING)
            self._finish()

    async def _until_disposed(self) -> None:
        lives = self.lives
        while self.lives == lives and self.state is not State.DISPOSED:
            await self.kernel.next_change()
        errors, self._undo_errors = self._undo_errors, []
        raise_all(errors, "unloading the host")

    def _check_not_own(self, what: str) -> None:
        """Whoever runs no plugin may wait for the root."""
        fiber = current_fiber.get()
        if fiber is not None and fiber is not self:
            super()._check_not_own(what)
