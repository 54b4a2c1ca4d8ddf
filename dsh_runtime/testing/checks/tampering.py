"""Makes a plugin fail in a way that its author has not written: its listeners, its guards, the services it uses."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

import trio
from attrs import evolve, frozen

from dsh_runtime.core.events import Listener, listener_table
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.ledger import Entry
from dsh_runtime.testing.checks.subject import STAGES
from dsh_runtime.testing.trial import Trial
from dsh_runtime.tools.registry import GUARD, Guard

BEFORE_THE_BODY: Final = ("tools/pre-execute", GUARD)


class Sabotage(RuntimeError):  # noqa: N818 - it is nobody's error
    """Raised by a check in the place of the plugin's own code."""


@frozen(eq=False)
class Spot:
    """A listener or guard of a plugin that can be tampered with. ``hits`` counts how often it was asked since."""

    entry: Entry
    stage: str
    where: str
    hits: list[None]

    def replaced(self, trial: Trial, by: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
        """Have it answer otherwise for the body of a ``with``."""
        return self._swapped(trial, lambda function: lambda *args: by())

    def watched(self, trial: Trial) -> contextlib.AbstractContextManager[None]:
        """Count how often it is asked, and have it answer as ever."""
        return self._swapped(trial, lambda function: function)

    @contextlib.contextmanager
    def _swapped(self, trial: Trial, other: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
        mine: Listener | Guard = self.entry.value
        self.hits.clear()
        self.entry.value = self._in_place_of(mine, other)
        trial.host.ctx.fiber.kernel.ledger.touch(self.entry.table)
        try:
            yield
        finally:
            self.entry.value = mine
            trial.host.ctx.fiber.kernel.ledger.touch(self.entry.table)

    def _in_place_of(
        self, mine: Listener | Guard, other: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> Listener | Guard:
        function = other(mine.check if isinstance(mine, Guard) else mine.call)

        def counted(*args: Any) -> Any:
            self.hits.append(None)
            return function(*args)

        return evolve(mine, check=counted) if isinstance(mine, Guard) else evolve(mine, call=counted)


def spots_of(fiber: Fiber) -> list[Spot]:
    """Where a plugin, and what it has mounted, decides about calls."""
    stages = {listener_table(stage): stage for stage in STAGES} | {GUARD: GUARD}
    found = [
        Spot(entry, stages[entry.table], entry.value.where, []) for entry in fiber.entries if entry.table in stages
    ]
    return found + [spot for child in fiber.children for spot in spots_of(child)]


def raising() -> Any:
    """What a listener does that fails."""
    raise Sabotage("sabotage by a check")


async def hanging() -> Any:
    """What a listener does that never answers."""
    await trio.sleep_forever()


def services_of(trial: Trial, fiber: Fiber) -> dict[str, Any]:
    """The services of other plugins that a plugin uses, but for the host's own."""
    known = {loaded.fiber for loaded in trial.host.plugins if loaded.id in trial.ids}
    return {
        name: entry.value
        for name, entry in fiber.uses.items()
        if entry is not None and entry.fiber is not fiber and entry.fiber in known
    }


@contextlib.contextmanager
def broken(service: Any, by: Callable[[], Any]) -> Iterator[bool]:
    """Have the methods of a service do something else for the body of a ``with``; whether there are any."""
    done = []
    for name, method in inspect.getmembers(service, callable):
        # A method that nobody awaits cannot hang without holding the host.
        fits = inspect.iscoroutinefunction(method) or not inspect.iscoroutinefunction(by)
        if not name.startswith("_") and fits and _put(service, name, _in_place_of(method, by)):
            done.append(name)
    try:
        yield bool(done)
    finally:
        for name in done:
            delattr(service, name)


def _put(service: Any, name: str, method: Any) -> bool:
    if name in getattr(service, "__dict__", {name: None}):
        return False  # An attribute of its own, which is no method, or no place for one.
    try:
        object.__setattr__(service, name, method)
    except (AttributeError, TypeError):
        return False
    return True


def _in_place_of(method: Any, by: Callable[[], Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method) and not inspect.iscoroutinefunction(by):

        async def other(*args: Any, **kwargs: Any) -> Any:
            return by()

        return other
    return lambda *args, **kwargs: by()
