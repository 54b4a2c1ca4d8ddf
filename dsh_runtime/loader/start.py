"""Wait for the plugins of a host that starts, and say which of them it waits for.

A plugin's ``apply`` may never return, or hold the event loop: the warning comes from a thread of its own, the limit
from trio.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import trio

from dsh_runtime.core.errors import PluginError
from dsh_runtime.core.lifecycle import State

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.core.kernel import Kernel

_log = logging.getLogger("dsh.host")
PATIENCE = 5.0
"""After how many seconds the warning comes."""
TELL_NOW: Final = {"dsh_tell_now": True}
"""Marks the records that are of use while the host starts, and not afterwards."""


class StartTimeoutError(PluginError):
    """A plugin was still loading when the time for the start was over."""


class StartWatch:
    """What a start is busy with, readable from any thread."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._importing: str | None = None

    @contextmanager
    def importing(self, plugin: str) -> Iterator[None]:
        """The body imports a plugin."""
        self._importing = plugin
        try:
            yield
        finally:
            self._importing = None

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Log one warning if the body takes longer than :data:`PATIENCE`."""
        timer = threading.Timer(PATIENCE, self._tell)
        timer.daemon = True
        timer.start()
        try:
            yield
        except trio.Cancelled:
            if waited_for := self._waited_for():
                _log.warning("the start is given up while it waits for %s", waited_for, extra=TELL_NOW)
            raise
        finally:
            timer.cancel()

    def _tell(self) -> None:
        if waited_for := self._waited_for():
            _log.warning("still waiting for %s", waited_for, extra=TELL_NOW)

    def _waited_for(self) -> str:
        importing = self._importing
        names = [f"plugin {importing!r} (importing)"] if importing is not None else []
        names += [f"plugin {fiber.id!r} ({fiber.state})" for fiber in late_fibers(self._kernel)]
        return ", ".join(names)


def late_fibers(kernel: Kernel) -> list[Fiber]:
    """The plugins on their way to another state, in order."""
    moving = [fiber for fiber in list(kernel.fibers) if fiber.state in (State.LOADING, State.UNLOADING)]
    return sorted(moving, key=lambda fiber: fiber.path)


async def settle_within(kernel: Kernel, limit: float | None, *, all_optional: bool = False) -> list[Fiber]:
    """Wait until the plugins have settled; give the late ones that may not fail alone, nothing if all went well.

    A late plugin that is optional fails alone, and the others are given as long again; with ``all_optional`` each does.
    """
    given_up: set[Fiber] = set()
    while True:
        with trio.move_on_after(float("inf") if limit is None else limit):
            await kernel.settle()
            return []
        late = late_fibers(kernel)
        if not late or not all(all_optional or fiber.optional for fiber in late) or not given_up.isdisjoint(late):
            return late or list(filter(lambda fiber: fiber.state is State.PENDING, kernel.fibers))
        for fiber in late:
            fiber.give_up(StartTimeoutError(too_late(fiber, limit)))
        given_up.update(late)


def too_late(fiber: Fiber, limit: float | None) -> str:
    """That a plugin is late, and what to do."""
    return (
        f"plugin {fiber.id!r} is still {fiber.state} after {limit:g} s (start_timeout); let its apply() return and "
        "hand long work to ctx.start_soon, or raise start_timeout in [host]"
    )
