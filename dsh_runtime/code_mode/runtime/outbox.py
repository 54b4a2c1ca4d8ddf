"""What the host sends to a program: at once where there is room, the rest as room comes. It never waits."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable


class Outbox:
    """Sends frames through a socket that does not block. ``changed`` is called when what is left has changed."""

    def __init__(self, connection: socket.socket, changed: Callable[[], None]) -> None:
        self._socket = connection
        self._changed = changed
        self._frames: deque[memoryview] = deque()
        self.backlog = 0
        self.watched = False

    def send(self, frame: bytes) -> None:
        """Send a frame, behind those that are left."""
        self._frames.append(memoryview(frame))
        self.backlog += len(frame)
        if len(self._frames) == 1:
            self._write()
        if self.backlog:
            self._changed()

    def flush(self) -> None:
        """There is room again."""
        self._write()
        self._changed()

    def _write(self) -> None:
        while self._frames:
            try:
                count = self._socket.send(self._frames[0])
            except BlockingIOError:
                return
            except OSError:  # the program's end is closed: nobody reads what is left
                self._frames.clear()
                self.backlog = 0
                return
            self.backlog -= count
            if count == len(self._frames[0]):
                self._frames.popleft()
            else:
                self._frames[0] = self._frames[0][count:]
