"""The program's end of the channel: frames out without ever waiting for the host, frames in as they come.

While a program runs, the socket does not block: a program that sends more than the host takes still hears its answers.
Before it runs, and at its very end, it does.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

from .wire import HEADER, framed

_CHUNK = 262_144
_HEADER_SIZE = HEADER.size


class Channel:
    """Sends and receives frames; ``heard`` gets every message from the host."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard: Callable[[list[Any]], None] = _ignore
        self._incoming = bytearray()
        self._outgoing: deque[memoryview] = deque()

    def receive(self) -> list[Any]:
        """The next message, waited for; ends the process if the host is gone."""
        (size,) = HEADER.unpack(self._exactly(_HEADER_SIZE))
        message: list[Any] = json.loads(self._exactly(size))
        return message

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view, filled = memoryview(data), 0
        while filled < size:
            count = self._socket.recv_into(view[filled:])
            if not count:
                os._exit(0)
            filled += count
        return data

    def listen(self, loop: asyncio.AbstractEventLoop, heard: Callable[[list[Any]], None]) -> None:
        """From now on take messages in as they come."""
        self._loop, self._heard = loop, heard
        self._socket.setblocking(False)
        loop.add_reader(self._socket, self._on_readable)

    def send(self, body: bytes) -> None:
        """Send a frame, at once or as soon as there is room."""
        frame = memoryview(framed(body))
        if not self._outgoing:
            frame = frame[self._sent(frame) :]
        if frame:
            self._outgoing.append(frame)
            if len(self._outgoing) == 1 and self._loop is not None:
                self._loop.add_writer(self._socket, self._on_writable)

    def send_last(self, body: bytes) -> NoReturn:
        """Send what is left and one more frame, then end the process at once: nothing else of the program runs."""
        self._socket.setblocking(True)
        for frame in self._outgoing:
            self._socket.sendall(frame)
        self._socket.sendall(framed(body))
        os._exit(0)

    def _sent(self, data: memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

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
        if not data:
            os._exit(0)
        self._incoming += data
        start, end = 0, len(self._incoming)
        while end - start >= _HEADER_SIZE:
            (size,) = HEADER.unpack_from(self._incoming, start)
            stop = start + _HEADER_SIZE + size
            if stop > end:
                break
            message = json.loads(self._incoming[start + _HEADER_SIZE : stop])
            start = stop
            self._heard(message)
        del self._incoming[:start]


def _ignore(message: list[Any]) -> None:
    """Nobody listens yet."""
