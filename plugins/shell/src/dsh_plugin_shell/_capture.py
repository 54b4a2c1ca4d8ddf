"""A command's output: its beginning and its end are kept, what lies between is counted."""

from __future__ import annotations

import codecs
import re
from typing import Final

from attrs import frozen

_MAX_CONTINUATION: Final = 3
_LINE_BREAK: Final = re.compile(rb"[\r\n]")
_LONG_LINE: Final = 2_000
_LAST_WORD: Final = re.compile(rb"[^\s\"',;&]{1,4096}\Z")
_TORN: Final = re.compile(rb"[^\n]{0,2000}\n|[^\n]{64}[^\s\"',;&]{0,4096}")


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
        if self.size <= self._head_room + self._tail_room:
            text, invalid = _decoded(bytes(self._head) + tail, cut=False)
            return Output(text, self.size, False, invalid)
        head = _before_cut(bytes(self._head))
        tail = _behind_cut(tail[len(tail) - self._tail_room :])
        omitted = self.size - len(head) - len(tail)
        head_text, head_invalid = _decoded(head, cut=True)
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


def _before_cut(head: bytes) -> bytes:
    """The beginning without the line, or of a long one without the word, that a cut has torn."""
    line = head.rfind(b"\n", max(0, len(head) - _LONG_LINE)) + 1
    return head[:line] or _LAST_WORD.sub(b"", head) or head


def _behind_cut(tail: bytes) -> bytes:
    """The end without what a cut has torn: half a secret, or one without its name, no longer looks like one."""
    torn = _TORN.match(tail)
    return _from_character(tail[torn.end() :] if torn and torn.end() < len(tail) else tail)


def _from_character(data: bytes) -> bytes:
    """The data without the rest of a character that a cut has torn."""
    for index in range(min(_MAX_CONTINUATION, len(data))):
        if data[index] & 0xC0 != 0x80:
            return data[index:]
    return data[_MAX_CONTINUATION:]


class News:
    """What has come since the last look, in whole lines, the last of them where there are many.

    A line that has lost a part is left out: what is left of it may be half a secret, and no longer look like one.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._data = b""
        self._torn = False

    def add(self, data: bytes) -> None:
        """Take some bytes in."""
        self._data += data
        if len(self._data) > self._room:
            self._data, self._torn = self._data[-self._room :], True
        if self._torn:
            line_break = _LINE_BREAK.search(self._data)
            self._data, self._torn = (self._data[line_break.end() :], False) if line_break else (b"", True)

    def take(self) -> str:
        """The lines that have ended since the last time; empty if there are none."""
        end = max(self._data.rfind(b"\n"), self._data.rfind(b"\r")) + 1
        lines, self._data = self._data[:end], self._data[end:]
        return lines.decode("utf-8", "replace")
