"""What the tests of plugins, services, scopes and events share: plugins made of functions, and a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import trio

from dsh_runtime import Context, Fiber, State, hookspec


class Plugin:
    """A plugin made of a name, what it injects and what it does when it applies."""

    def __init__(
        self,
        name: str,
        apply: Callable[..., Any] | None = None,
        inject: Iterable[str] | Mapping[str, bool] = (),
        provides: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.inject = dict(inject) if isinstance(inject, Mapping) else list(inject)
        self.provides = tuple(provides)
        self.apply = apply if apply is not None else _nothing


def _nothing(ctx: Context) -> None:
    """Applies without registering anything."""


class Log(list[str]):
    """What happened, in order."""

    def plugin(
        self, name: str, then: Callable[[Context], Any] | None = None, inject: Any = (), provides: Iterable[str] = ()
    ) -> Plugin:
        """A plugin that logs ``+name`` when it applies and ``-name`` as its first effect is undone."""

        def apply(ctx: Context) -> Any:
            self.append(f"+{name}")
            ctx.effect(lambda: lambda: self.append(f"-{name}"))
            return then(ctx) if then is not None else None

        return Plugin(name, apply, inject, provides)

    def take(self) -> list[str]:
        """What happened since the last time."""
        taken = list(self)
        self.clear()
        return taken


def provider(name: str, service: str, value: Any = "value", **more: Any) -> Plugin:
    """A plugin that provides one service."""
    return Plugin(name, lambda ctx: ctx.provide(service, value), provides=(service,), **more)


async def settled(ctx: Context) -> None:
    """Wait until every plugin has come to rest."""
    await ctx.fiber.kernel.settle()


def states(*fibers: Fiber) -> list[State]:
    """Where fibers stand."""
    return [fiber.state for fiber in fibers]


def left_over(ctx: Context) -> dict[str, Any]:
    """What a kernel holds beside its root: nothing when every plugin has been disposed."""
    kernel = ctx.fiber.kernel
    found = {
        "fibers": list(kernel.fibers),
        "entries": list(kernel.ledger._groups) + list(kernel.ledger._index),
        "steps": [step.label for step in ctx.stack.steps],
        "children": list(ctx.fiber.children),
        "scopes": list(kernel.scopes._owners),
        "tasks": [task.name for task in kernel.nursery.child_tasks if task.name not in ("root plugin", "plugin turns")],
    }
    return {name: items for name, items in found.items() if items}


class Gate:
    """A place at which code of a plugin waits until a test lets it go on."""

    def __init__(self) -> None:
        self.reached = trio.Event()
        self.go = trio.Event()

    async def stop(self) -> None:
        """Say that the place is reached, and wait there."""
        self.reached.set()
        await self.go.wait()


async def stubborn(gate: Gate) -> None:
    """Swallows every cancellation until the gate lets it go."""
    gate.reached.set()
    while not gate.go.is_set():
        try:
            await gate.go.wait()
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                await gate.go.wait()


class Specs:
    """Events of the tests' own."""

    @staticmethod
    @hookspec(mode="emit")
    def demo_seen(what: str, more: int) -> None:
        """Something has been seen."""

    @staticmethod
    @hookspec(mode="waterfall", returns=(str,))
    def demo_ask(what: str, next: Any) -> str:
        """Answer a question."""
        raise AssertionError("a specification is not called")

    @staticmethod
    @hookspec(mode="emit", scoped=False)
    def demo_global() -> None:
        """Something has happened, in whatever scope."""
