"""Background tasks of plugins: cancelled and awaited in their place on the stack of what a plugin has done."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.core.effects import EffectStack
    from dsh_runtime.core.fiber import Fiber


class BackgroundTask:
    """A task of a fiber. It runs in the kernel's nursery: one that does not end when cancelled holds up nobody else."""

    def __init__(
        self, fiber: Fiber, stack: EffectStack, fn: Callable[..., Awaitable[Any]], args: tuple[Any, ...]
    ) -> None:
        self.fiber = fiber
        self._life: Context = fiber.ctx
        self._stack = stack
        self._fn = fn
        self._args = args
        self._scope = trio.CancelScope(shield=True)
        self._done = trio.Event()
        #: What a task is started with, also one that starts later, when its plugin takes another one's place.
        self._vars = contextvars.copy_context()
        self._began = False
        self._step = stack.add(self._stop, f"the task {self.label}")

    @property
    def label(self) -> str:
        """What messages call it."""
        return str(getattr(self._fn, "__qualname__", self._fn))

    def begin(self) -> None:
        """Start, unless the task has been undone meanwhile."""
        if self._step in self._stack.steps and not self._began:
            self._began = True
            self._vars.run(self._start)

    def _start(self) -> None:
        self.fiber.kernel.nursery.start_soon(self._run, name=f"{self.fiber.id}: {self.label}")

    async def _stop(self) -> None:
        self._scope.cancel()
        if self._began:
            await self._done.wait()

    async def _run(self) -> None:
        try:
            await self.fiber.run_task(self._scope, self._fn, self._args, self._life)
        finally:
            self._done.set()
            self._stack.drop(self._step)
