"""One command, from its start until nothing of it is left.

Strategy: everything that must happen once the warden has started is shielded. A cancellation closes the warden's stdin
and nothing else; what follows is the same whether the command ended by itself or was told to: the warden ends what is
left, the output is read to its end, the warden is waited for.
"""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import trio
from attrs import evolve, frozen

from dsh_plugin_shell._capture import Capture, News, Output
from dsh_plugin_shell._environment import MARKER
from dsh_plugin_shell._errors import ShellError, folder_error, start_error
from dsh_plugin_shell._order import Order
from dsh_plugin_shell._strays import end_strays

#: Told how many bytes have come, and the new text.
Tell: TypeAlias = Callable[[int, str], None]

_WARDEN: Final = str(Path(__file__).with_name("_warden.py"))
_CHUNK: Final = 65_536
_NEWS_BYTES: Final = 2_000
_NEWS_SECONDS: Final = 0.2
#: Seconds that the warden may take beyond the grace, and that output may take to end once every process has.
_MARGIN: Final = 10.0
_DRAIN_SECONDS: Final = 2.0
_MAX_STATUS: Final = 4_096


@frozen
class Limits:
    """How much output is kept, and at how much the command is stopped."""

    keep_bytes: int
    max_output_bytes: int


@frozen
class Ended:
    """How a command ended. ``background`` says that it left processes behind, which were ended."""

    status: int
    output: Output
    seconds: float
    background: bool
    too_much_output: bool


async def run(order: Order, limits: Limits, tell: Tell) -> Ended:
    """Run a command to its end; when it is cancelled, bring it to rest first."""
    marker = secrets.token_hex(16)
    order = evolve(order, env={**order.env, MARKER: marker})
    order_text = order.encode()
    await trio.lowlevel.checkpoint_if_cancelled()
    with trio.CancelScope(shield=True):
        process = await _start_warden()
    command = _Command(process, order, order_text, limits, tell)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(command.stop_when_cancelled)
        with trio.CancelScope(shield=True):
            ended = await command.to_rest(marker)
        nursery.cancel_scope.cancel()
    return ended


async def _start_warden() -> trio.Process:
    if not sys.executable:
        raise ShellError("SHELL_NOT_STARTED", "Python's own program is not known (sys.executable is empty)")
    pipe = subprocess.PIPE
    # A Python that is built in an unusual place may need these to start; the command does not get them.
    env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    command = [sys.executable, "-I", "-S", _WARDEN]
    return await trio.lowlevel.open_process(
        command, stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd="/", start_new_session=True
    )


class _Command:
    """The host's side of one warden."""

    def __init__(self, process: trio.Process, order: Order, order_text: bytes, limits: Limits, tell: Tell) -> None:
        self._process = process
        self._order = order
        self._order_text = order_text
        self._limits = limits
        self._tell = tell
        self._capture = Capture(limits.keep_bytes)
        self._news = News(_NEWS_BYTES)
        self._ending = trio.CancelScope()
        self._output_ended = trio.Event()
        self._status: int | None = None
        self._background: bool | None = None
        self._failure: ShellError | None = None
        self._too_much = False

    async def stop_when_cancelled(self) -> None:
        """Wait for a cancellation, and pass it on."""
        try:
            await trio.sleep_forever()
        finally:
            self.stop()

    def stop(self) -> None:
        """Have the warden bring the command to rest, in bounded time."""
        stdin: Any = self._process.stdin
        stdin.close()
        self._bound()

    def _bound(self) -> None:
        if self._ending.deadline == math.inf:
            self._ending.deadline = trio.current_time() + self._order.grace + _MARGIN

    async def to_rest(self, marker: str) -> Ended:
        """Follow the command to its end; raises if it could not be run, or not be brought to rest."""
        began = time.monotonic()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._take_output)
                nursery.start_soon(self._tell_news)
                with self._ending:
                    await self._give_order()
                    await self._follow()
                with trio.move_on_after(_DRAIN_SECONDS):
                    await self._output_ended.wait()
                nursery.cancel_scope.cancel()
        finally:
            await self._clean_up(marker)
        return self._outcome(time.monotonic() - began)

    async def _give_order(self) -> None:
        stdin: Any = self._process.stdin
        # Where it has been told to stop already, or is gone, its status tells.
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stdin.send_all(self._order_text)

    async def _follow(self) -> None:
        """Read what the warden reports, to its end. The command might write there, too: nothing is taken on trust."""
        stdout: Any = self._process.stdout
        data = b""
        while len(data) < _MAX_STATUS and (chunk := await stdout.receive_some(_MAX_STATUS)):
            *lines, data = (data + chunk).split(b"\n")
            for line in lines:
                self._note(line.decode("ascii", "replace").split())

    def _note(self, words: list[str]) -> None:
        match words:
            case ["failed", "folder", number] if number.isdecimal():
                self._failure = folder_error(self._order.folder, int(number))
            case ["failed", "exec", number] if number.isdecimal():
                self._failure = start_error(self._order.argv[0], int(number))
            case ["exited", status] if status.isdecimal():
                self._status = int(status)
                self._bound()
            case ["rest", background]:
                self._background = background == "1"

    async def _take_output(self) -> None:
        stderr: Any = self._process.stderr
        try:
            while chunk := await stderr.receive_some(_CHUNK):
                self._capture.add(chunk)
                self._news.add(chunk)
                if self._capture.size > self._limits.max_output_bytes and not self._too_much:
                    self._too_much = True
                    self.stop()
        finally:
            self._output_ended.set()

    async def _tell_news(self) -> None:
        """Pass new output on, at a bounded rate."""
        while True:
            await trio.sleep(_NEWS_SECONDS)
            text = self._news.take()
            if text:
                self._tell(self._capture.size, text)

    async def _clean_up(self, marker: str) -> None:
        """Leave no process and no pipe; where the warden has not done its work, look for what is left by the marker."""
        if self._background is None:
            self._process.kill()
        await self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                await stream.aclose()
        if self._background is None:
            left = await end_strays(marker)
            self._failure = self._failure or _lost(left)

    def _outcome(self, seconds: float) -> Ended:
        if self._failure is None and (self._status is None or self._background is None):
            self._failure = _lost(0)
        if self._failure is not None:
            raise self._failure
        assert self._status is not None and self._background is not None
        return Ended(self._status, self._capture.output(), seconds, self._background, self._too_much)


def _lost(left: int) -> ShellError:
    if left:
        problem = f"{left} processes that the command started could not be ended"
        return ShellError("SHELL_NOT_ENDED", f"{problem}; look for them with ps, and tell who runs this host")
    problem = "the process that watches over the command was ended from outside, or got stuck"
    rest = "what the command had started was ended, how it would have ended is not known"
    return ShellError("SHELL_WARDEN_LOST", f"{problem}; {rest}")
