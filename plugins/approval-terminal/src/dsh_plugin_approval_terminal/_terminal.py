"""The controlling terminal of the process, whatever stdin and stdout are.

Strategy: it is opened anew for each question, without blocking, so that its modes and offsets are nobody else's. trio
waits for it to be ready; no thread is left in a read. While it is asked, a key comes through at once and unechoed, and
Ctrl-C comes as a key, so that it is an answer too. Whatever fails means that there is no terminal.
"""

from __future__ import annotations

import contextlib
import os
import termios
from collections.abc import Iterator
from typing import Any, Final

import trio
from attrs import frozen

DEVICE: Final = "/dev/tty"
_FLAGS: Final = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
_OUTPUT, _LOCAL, _CHARACTERS = 1, 3, 6
_CHUNK: Final = 1024


#: What a terminal that does not say how wide it is takes for its width.
_WIDTH: Final = 80


@frozen
class Looks:
    """What a terminal can show."""

    width: int
    colour: bool


class NoTerminalError(Exception):
    """There is no terminal, or it is another program's at the moment, or it has gone."""


@contextlib.contextmanager
def open_terminal() -> Iterator[Terminal]:
    """The terminal, ready to ask; as it was before, when the block ends."""
    with _failing_as_no_terminal():
        fd = os.open(DEVICE, _FLAGS)
    try:
        terminal = Terminal(fd)
        if not terminal.is_ours:
            raise NoTerminalError("the process runs in the background of its terminal")
        with terminal.one_key_at_a_time():
            yield terminal
    finally:
        os.close(fd)


class Terminal:
    """A terminal that a person reads and types at."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def is_ours(self) -> bool:
        """Whether the process is in the foreground. One in the background is stopped when it reads."""
        with _failing_as_no_terminal():
            return os.tcgetpgrp(self._fd) == os.getpgrp()

    @property
    def looks(self) -> Looks:
        """How wide it is, and whether it has colours and may use them."""
        with _failing_as_no_terminal():
            width = os.get_terminal_size(self._fd).columns or _WIDTH
        return Looks(width, os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("NO_COLOR"))

    @contextlib.contextmanager
    def one_key_at_a_time(self) -> Iterator[None]:
        """Have keys come through as they are typed, and forget those that were typed before."""
        with _failing_as_no_terminal():
            before = termios.tcgetattr(self._fd)
            termios.tcsetattr(self._fd, termios.TCSANOW, _asking(before, self._fd))
            self.forget_typed()
        try:
            yield
        finally:
            # In the background the terminal is the shell's, which has its own modes for it.
            with contextlib.suppress(NoTerminalError, OSError, termios.error):
                if self.is_ours:
                    termios.tcsetattr(self._fd, termios.TCSANOW, before)

    def forget_typed(self) -> None:
        """Throw away what has been typed and not been read."""
        with _failing_as_no_terminal():
            termios.tcflush(self._fd, termios.TCIFLUSH)

    async def write(self, text: str) -> None:
        """Write, however slow the terminal is."""
        rest = memoryview(text.encode("utf-8", "replace"))
        with _failing_as_no_terminal():
            while rest:
                await trio.lowlevel.wait_writable(self._fd)
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(self._fd, rest) :]

    def add(self, text: str) -> None:
        """Write a last word, if the terminal takes it."""
        with contextlib.suppress(OSError):
            os.write(self._fd, text.encode("utf-8", "replace"))

    async def typed(self) -> bytes:
        """Wait for something to be typed."""
        with _failing_as_no_terminal():
            while True:
                await trio.lowlevel.wait_readable(self._fd)
                with contextlib.suppress(BlockingIOError):
                    typed = os.read(self._fd, _CHUNK)
                    break
        if not typed:
            raise NoTerminalError("the terminal has been closed")
        return typed


def _asking(modes: list[Any], fd: int) -> list[Any]:
    """The modes while a person is asked; output and the other signals work as ever."""
    asking = [*modes]
    asking[_OUTPUT] |= termios.OPOST | termios.ONLCR
    asking[_LOCAL] = (asking[_LOCAL] | termios.ISIG) & ~(termios.ICANON | termios.ECHO)
    characters = asking[_CHARACTERS] = [*modes[_CHARACTERS]]
    characters[termios.VMIN], characters[termios.VTIME] = 1, 0
    characters[termios.VINTR] = bytes([os.fpathconf(fd, "PC_VDISABLE") & 0xFF])
    return asking


@contextlib.contextmanager
def _failing_as_no_terminal() -> Iterator[None]:
    try:
        yield
    except (OSError, termios.error) as error:
        raise NoTerminalError(str(error)) from error
