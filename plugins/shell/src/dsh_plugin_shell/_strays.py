"""The last resort, where the warden itself was killed: find what is left of a call by its marker, and kill it."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

import trio

from dsh_plugin_shell._environment import MARKER

_PAUSE: Final = 0.02
_SECONDS: Final = 5.0


async def end_strays(marker: str) -> int:
    """Kill every process that carries the marker, until there is none; give the number that is left after a while."""
    deadline = trio.current_time() + _SECONDS
    while found := strays(marker):
        if trio.current_time() > deadline:
            return len(found)
        for pid in found:
            _kill(pid, marker)
        await trio.sleep(_PAUSE)
    return 0


def strays(marker: str) -> list[int]:
    """The processes that carry the marker in their environment; none where there is no ``/proc``."""
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    return [pid for pid in processes if _carries(pid, marker)]


def _carries(pid: int, marker: str) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return f"{MARKER}={marker}".encode() in file.read().split(b"\0")
    except OSError:
        return False


def _kill(pid: int, marker: str) -> None:
    """Kill one process; it is held by a descriptor first, so that its number cannot have become another's."""
    with contextlib.suppress(OSError):
        descriptor = os.pidfd_open(pid)
        try:
            if _carries(pid, marker):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
