"""A pseudo-terminal with a host behind it, which is a process of its own with that terminal as its controlling one."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

HOST = Path(__file__).with_name("host_process.py")
#: Nothing here takes long; what hangs is to fail and not to block.
PATIENCE = 20


@define(eq=False)
class Screen:
    """A terminal as the person in front of it has it, and the host's stdout."""

    master: int
    slave: int
    process: trio.Process
    shown: str = ""
    _unread: bytearray = field(factory=bytearray)

    async def sees(self, text: str, times: int = 1) -> None:
        """Wait until the terminal shows a text, so many times."""
        while self.shown.count(text) < times:
            await trio.lowlevel.wait_readable(self.master)
            self.shown += os.read(self.master, 65536).decode()

    async def sees_question(self, times: int = 1) -> None:
        """Wait until a question stands there."""
        await self.sees("show [a]ll: ", times)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    async def says(self) -> Any:
        """The next thing that the host says on stdout, as JSON."""
        assert self.process.stdout is not None
        while b"\n" not in self._unread:
            chunk = await self.process.stdout.receive_some()
            assert chunk, f"the host has ended; the terminal shows:\n{self.shown}"
            self._unread += chunk
        line, _, rest = bytes(self._unread).partition(b"\n")
        self._unread[:] = rest
        return json.loads(line)

    async def tells(self, **command: Any) -> None:
        """Tell the host something on stdin."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(command).encode() + b"\n")

    def hang_up(self) -> None:
        """Close the terminal; whoever has it as the controlling one is sent SIGHUP."""
        os.close(self.master)
        self.master = -1

    def modes(self) -> list[Any]:
        return termios.tcgetattr(self.slave)


def _take_terminal(slave: int | None) -> Callable[[], None]:
    """What the new process does in its own session: it takes the terminal as its controlling one."""

    def take() -> None:
        if slave is not None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    return take


@asynccontextmanager
async def _open_screen(controlling: bool = True, terminal: str = "dumb", **settings: Any) -> AsyncIterator[Screen]:
    master, slave = pty.openpty()
    command = [sys.executable, str(HOST), json.dumps(settings)]
    environment = {**os.environ, "TERM": terminal}
    try:
        with trio.fail_after(PATIENCE):
            process = await trio.lowlevel.open_process(
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=_take_terminal(slave if controlling else None),
            )
            screen = Screen(master, slave, process)
            try:
                yield screen
            finally:
                master = screen.master
                if process.returncode is None:
                    process.kill()
                    with trio.CancelScope(shield=True):
                        await process.wait()
    finally:
        for fd in {master, slave} - {-1}:
            os.close(fd)


@pytest.fixture
def open_screen() -> Callable[..., AbstractAsyncContextManager[Screen]]:
    """``async with open_screen(**settings) as screen``; ``terminal`` is what TERM says."""
    return _open_screen
