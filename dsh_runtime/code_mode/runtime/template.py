"""The host's side of the template, from which the processes of programs are copied."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from dsh_runtime.code_mode.runtime.child.order import Order
from dsh_runtime.code_mode.runtime.errors import CodeRuntimeError

_HOME: Final = str(Path(__file__).parent)
_START: Final = "import sys; sys.path.insert(0, sys.argv.pop()); from child.template import main; main()"
_PASSED_ON: Final = ("LD_LIBRARY_PATH",)
_PATIENCE: Final = 5.0


class Template:
    """Starts the template when it is needed, and again if it has died."""

    def __init__(self) -> None:
        self._process: trio.Process | None = None
        self._socket: socket.socket | None = None
        self._lock = trio.Lock()

    async def send(self, order: Order, descriptors: Sequence[int]) -> None:
        """Hand an order to the template, with descriptors for the program."""
        data = json.dumps(order).encode()
        async with self._lock:
            try:
                await self._send(data, descriptors)
            except OSError:  # it was killed: the next one takes over
                await self._end()
                await self._send(data, descriptors)

    async def _send(self, data: bytes, descriptors: Sequence[int]) -> None:
        connection = self._socket or await self._start()
        while True:
            try:
                socket.send_fds(connection, [data], descriptors)
                return
            except BlockingIOError:
                await trio.lowlevel.wait_writable(connection)

    async def _start(self) -> socket.socket:
        if not sys.executable:
            raise CodeRuntimeError("programs cannot be run: sys.executable does not say where Python is")
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _START, _HOME]
        # A Python that is built in an unusual place may need these to start; programs do not get them.
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with trio.CancelScope(shield=True), its:
            self._process = await trio.lowlevel.open_process(
                command, stdin=its, stdout=subprocess.DEVNULL, env=env, cwd="/", start_new_session=True
            )
        own.setblocking(False)
        self._socket = own
        return own

    async def close(self) -> None:
        """End the template; the wardens of programs are on their own."""
        async with self._lock:
            await self._end()

    async def _end(self) -> None:
        connection, process = self._socket, self._process
        self._socket = self._process = None
        if connection is not None:
            connection.close()
        if process is None:
            return
        with trio.CancelScope(shield=True):
            with trio.move_on_after(_PATIENCE):
                await process.wait()
            with contextlib.suppress(OSError):
                process.send_signal(signal.SIGKILL)
            await process.wait()
