"""What a program prints: taken up to a limit, and never more of it than that is kept."""

from __future__ import annotations

import os
from typing import Final

_CHUNK: Final = 65_536


class Output:
    """Reads a pipe that does not block."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor = descriptor
        self._limit = limit
        self._data = bytearray()
        self.too_much = False
        self.ended = False

    def read(self) -> bool:
        """Take a chunk; whether there was any."""
        try:
            chunk = os.read(self.descriptor, _CHUNK)
        except BlockingIOError:
            return False
        self.ended = not chunk
        room = self._limit - len(self._data)
        self._data += chunk[:room]
        self.too_much |= len(chunk) > room
        return bool(chunk)

    def drain(self) -> None:
        """Take what is there, unless it is too much already."""
        while not self.too_much and not self.ended and self.read():
            pass

    def text(self) -> str:
        """What was printed."""
        return self._data.decode("utf-8", "replace")
