"""Run a command under trio, and bring it to rest when the process is told to stop.

The first SIGINT, SIGTERM or SIGHUP aborts the command's signal and cancels the command; a call that is under way is
shielded from the cancellation, since its own signal stops it, and its result is still told. Then the host unwinds. A
second one leaves at once. The handlers are our own, because trio's wait for the event loop, which a plugin may block.

A command may do something else about a SIGHUP, such as to reload; where the terminal has gone, it ends all the same.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Final, TypeVar

import trio
from dsh_hookspecs import AbortController, AbortSignal

from dsh_runtime.cli.errors import CliError

T = TypeVar("T")

_log = logging.getLogger("dsh.host")

_SIGNALS: Final = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_HANGUP: Final = getattr(signal, "SIGHUP", None)
_PATIENCE: Final = 2.0
"""After how many seconds it is told that the end takes its time."""
_SHELL_BASE: Final = 128
"""A shell reports a program that a signal ended as 128 and the signal's number."""


class RunInterruptedError(CliError):
    """The process was told to stop, and has come to rest."""

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}", code=_SHELL_BASE + number)


class Interruption:
    """Whether the process was told to stop, as an abort signal for calls and a cancel scope for the rest."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.scope = trio.CancelScope()
        #: What is done about a SIGHUP that somebody has sent on purpose; nothing makes it an interruption.
        self.on_hangup: Callable[[], object] | None = None
        self._controller = AbortController()

    @property
    def signal(self) -> AbortSignal:
        """Aborted when the process is told to stop."""
        return self._controller.signal

    def stop(self) -> None:
        """Bring everything to rest."""
        self._controller.abort(f"interrupted by {signal.Signals(self.number or signal.SIGINT).name}")
        self.scope.cancel()
        trio.lowlevel.spawn_system_task(_tell_of_what_goes_on)


async def _tell_of_what_goes_on() -> None:
    from dsh_runtime.loader.start import TELL_NOW

    await trio.sleep(_PATIENCE)
    _log.warning(
        "something is still under way that cannot be stopped, such as a tool in a thread; it is waited for, and "
        "another interruption ends at once",
        extra=TELL_NOW,
    )


def run(command: Callable[[Interruption], Awaitable[T]]) -> T:
    """Run a command to its end; :class:`RunInterruptedError` if the process was told to stop meanwhile."""
    interruption = Interruption()
    outcome = trio.run(_supervise, command, interruption)
    if interruption.number is not None:
        raise RunInterruptedError(interruption.number)
    assert outcome is not None
    return outcome[0]


async def _supervise(command: Callable[[Interruption], Awaitable[T]], interruption: Interruption) -> tuple[T] | None:
    token = trio.lowlevel.current_trio_token()

    had_terminal = _has_terminal()

    def handle(number: int, frame: FrameType | None) -> None:
        if number == _HANGUP and interruption.on_hangup is not None and _has_terminal() == had_terminal:
            token.run_sync_soon(interruption.on_hangup)
            return
        if interruption.number is not None:
            os._exit(_SHELL_BASE + number)
        interruption.number = number
        token.run_sync_soon(interruption.stop)

    with _handling(handle), interruption.scope:
        return (await command(interruption),)
    return None


def _has_terminal() -> bool:
    """Whether there is a terminal that the process belongs to; one that was closed is none."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _handling(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have ``handle`` called for each of our signals that is not ignored."""
    replaced = {number: old for number in _SIGNALS if (old := signal.getsignal(number)) is not signal.SIG_IGN}
    for number in replaced:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, old in replaced.items():
            signal.signal(number, old)
