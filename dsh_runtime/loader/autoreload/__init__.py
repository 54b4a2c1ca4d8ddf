"""Reload by itself: watch the files that a host rests on, and hand what changes to its reloader.

::

    task       the task that has a host reload
    watcher    a thread that waits for changes
    polling    what waits where the system does not tell
    relevance  which changed files matter
    places     which folders are there to be watched
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from attrs import evolve

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host
    from dsh_runtime.loader.model import HostConfig


def without_reload(config: HostConfig) -> HostConfig:
    """The same config, for a host that is there for a moment."""
    return evolve(config, host=evolve(config.host, reload=False))


def refresh_soon(host: Host) -> None:
    """Have a host take up whatever has changed. Raises nothing: it is called where nobody could catch it."""
    from dsh_runtime.core.errors import DisposedError

    async def refresh() -> None:
        try:
            await host.reload.refresh()
        except DisposedError:
            return
        except Exception:
            logging.getLogger("dsh.host").exception("the reload failed by a fault of the host; all runs as it did")

    with contextlib.suppress(DisposedError):
        host.ctx.start_soon(refresh)
