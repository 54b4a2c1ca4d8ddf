"""A command's output: its beginning and its end are kept, what lies between is counted."""

from __future__ import annotations

import codecs
from typing import Final

from attrs import frozen

_MAX_CONTINUATION: Final = 3


@frozen
class Output:
    """The text that was kept. ``invalid_utf8`` says that bytes in it were replaced by U+FFFD."""

    text: str
    size: int
    truncated: bool
    invalid_utf8: bool


class Capture:
    """Takes output in, in bounded room."""

    def __init__(self, keep: int) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._head_room = (keep + 1) // 2
        self._tail_room = keep // 2

    def add(self, data: bytes) -> None:
        """Take some bytes in."""
        self.size += len(data)
        room = self._head_room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_room + 65_536:
            del self._tail[: len(self._tail) - self._tail_room]

    def output(self) -> Output:
        """What was kept, with a note in the place of what was not."""
        tail = bytes(self._tail)
        omitted = max(0, len(tail) - self._tail_room) + self.size - len(self._head) - len(tail)
        if not omitted:
            text, invalid = _decoded(bytes(self._head) + tail, cut=False)
            return Output(text, self.size, False, invalid)
        tail = _from_character(tail[len(tail) - self._tail_room :])
        head_text, head_invalid = _decoded(bytes(self._head), cut=True)
        tail_text, tail_invalid = _decoded(tail, cut=False)
        text = f"{head_text}\n… {omitted:,} bytes left out …\n{tail_text}"
        return Output(text, self.size, True, head_invalid or tail_invalid)


def _decoded(data: bytes, *, cut: bool) -> tuple[str, bool]:
    """The text, and whether bytes had to be replaced; a character that a cut has torn is left out."""
    decoder = codecs.getincrementaldecoder("utf-8")
    try:
        return decoder("strict").decode(data, final=not cut), False
    except UnicodeDecodeError:
        return decoder("replace").decode(data, final=not cut), True


def _from_character(data: bytes) -> bytes:
    """The data without the rest of a character that a cut has torn."""
    for index in range(min(_MAX_CONTINUATION, len(data))):
        if data[index] & 0xC0 != 0x80:
            return data[index:]
    return data[_MAX_CONTINUATION:]


class News:
    """What has come since the last look, its end where it is much."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._data = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes) -> None:
        """Take some bytes in."""
        self._data = (self._data + data)[-self._room :] if len(data) < self._room else data[-self._room :]

    def take(self) -> str:
        """The text since the last time; empty if there is none."""
        data, self._data = self._data, b""
        return self._decoder.decode(data)
