"""The program's end of the channel: frames out without ever waiting for the host, frames in as they come.

While a program runs, the socket does not block: a program that sends more than the host takes still hears its answers.
Before it runs, and at its very end, it does.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from .values import collection_paused
from .wire import HEADER, framed

_CHUNK = 65_536
_HEADER_SIZE = HEADER.size
#: From this size on it pays to keep the garbage collector away.
_LARGE = 100_000


class Channel:
    """Sends and receives frames; ``heard`` gets every message from the host."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._descriptor = connection.fileno()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard: Callable[[list[Any]], None] = _ignore
        self._listening = False
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        self._incoming = bytearray()
        self._outgoing: deque[memoryview] = deque()

    def receive(self) -> list[Any]:
        """The next message, waited for; ends the process if the host is gone."""
        while (message := self._next()) is None:
            self._take(self._socket.recv(_CHUNK))
        return message

    def _take(self, data: bytes) -> None:
        if not data:
            os._exit(0)
        self._incoming += data

    def _next(self) -> list[Any] | None:
        """The next message that has come whole."""
        if len(self._incoming) < _HEADER_SIZE:
            return None
        (size,) = HEADER.unpack_from(self._incoming)
        stop = _HEADER_SIZE + size
        if len(self._incoming) < stop:
            return None
        body = self._incoming[_HEADER_SIZE:stop].decode()
        del self._incoming[:stop]
        if size < _LARGE:
            return _parsed(body)
        with collection_paused():
            return _parsed(body)

    def attach(self, loop: asyncio.AbstractEventLoop, heard: Callable[[list[Any]], None]) -> None:
        """Do not wait any more: use this loop, and give ``heard`` what comes."""
        self._loop, self._heard = loop, heard
        self._socket.setblocking(False)

    def listen(self) -> None:
        """Take messages in as they come; not before there is one to be expected, since it costs the program time."""
        if not self._listening and self._loop is not None:
            self._listening = True
            self._loop.add_reader(self._socket, self._on_readable)
            self._loop.call_soon(self._hear)  # what came together with the program

    def send(self, body: bytes) -> None:
        """Send a frame, at once or as soon as there is room."""
        frame = memoryview(framed(body))
        if not self._outgoing:
            frame = frame[self._sent(frame) :]
        if frame:
            self._outgoing.append(frame)
            if len(self._outgoing) == 1 and self._loop is not None:
                self._loop.add_writer(self._socket, self._on_writable)

    def send_last(self, body: bytes) -> None:
        """Send one more frame, waiting for the host to take it.

        Of what is left only a frame that has been begun goes before it: the others are of calls that would be aborted
        at once. Answers that still come are thrown away, since a host that cannot get rid of them does not read.
        """
        begun = [frame for frame in list(self._outgoing)[:1] if len(frame) < memoryview(frame.obj).nbytes]
        self._outgoing.clear()
        for frame in (*begun, memoryview(framed(body))):
            frame = frame[self._sent(frame) :]
            while frame:
                self._wait()
                frame = frame[self._sent(frame) :]

    def _wait(self) -> None:
        """Until there is room; what comes meanwhile is of no interest any more."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN | select.POLLOUT)
        ((_, events),) = poll.poll()
        if events & ~select.POLLOUT and not self._socket.recv(_CHUNK):
            os._exit(0)

    def send_raw(self, frame: bytes) -> None:
        """Send a frame that was made beforehand: this takes no memory."""
        os.write(self._descriptor, frame)

    def _sent(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    def wait_briefly(self) -> None:
        """Wait for an answer without a round of the event loop: most come back at once."""
        if self._poll.poll(1):
            self._on_readable()

    def _on_writable(self) -> None:
        frame = self._outgoing[0]
        rest = frame[self._sent(frame) :]
        if rest:
            self._outgoing[0] = rest
            return
        self._outgoing.popleft()
        if not self._outgoing and self._loop is not None:
            self._loop.remove_writer(self._socket)

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        self._take(data)
        self._hear()

    def _hear(self) -> None:
        while (message := self._next()) is not None:
            self._heard(message)


def _parsed(body: str) -> list[Any]:
    message: list[Any] = json.loads(body)
    return message


def _ignore(message: list[Any]) -> None:
    """Nobody listens yet."""
