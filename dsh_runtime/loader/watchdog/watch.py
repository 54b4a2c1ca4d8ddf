"""The watchdog of a host: one thread, for as long as the host runs."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import trio

from dsh_runtime.loader.watchdog.pulse import Pulse
from dsh_runtime.loader.watchdog.strays import Strays

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.core.kernel import Kernel

_log = logging.getLogger("dsh.host")


@contextlib.asynccontextmanager
async def watching(kernel: Kernel, limit: float) -> AsyncIterator[None]:
    """Name whatever holds the event loop for longer than ``limit`` seconds, or outlives its plugin, meanwhile."""

    def fibers() -> list[Fiber]:
        return _copied(kernel)

    pulse, strays = Pulse(limit, fibers), Strays(fibers)
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            _guarded(pulse.rest, over)
            _guarded(pulse.beat, over)
            _guarded(strays.look)
        _guarded(strays.look_at_last)

    thread = threading.Thread(target=watch, name="dsh watchdog", daemon=True)
    undo = kernel.watch_states(strays.moved)
    thread.start()
    try:
        yield
    finally:
        undo()
        over.set()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(thread.join)


def _guarded(look: Callable[..., None], *args: object) -> None:
    try:
        look(*args)
    except Exception:
        _log.exception("the watchdog failed, and goes on")


def _copied(kernel: Kernel) -> list[Fiber]:
    """The plugins, read from another thread: the dictionary may change while it is copied."""
    for _ in range(10):
        with contextlib.suppress(RuntimeError):
            return list(kernel.fibers)
    return []
