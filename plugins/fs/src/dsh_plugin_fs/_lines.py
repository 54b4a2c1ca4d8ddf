"""Lines of a file of any size, in bounded memory: nothing here holds more than a block and the head of one line."""

from __future__ import annotations

import os
from collections.abc import Iterator

from attrs import frozen

from dsh_plugin_fs._limits import Poll

BLOCK_BYTES = 256 * 1024


@frozen
class RawLine:
    """One line: where it begins, its first bytes, and the size of all of it, line ending left out."""

    start: int
    head: bytes
    size: int
    ended: bool

    @property
    def end(self) -> int:
        """Where the next line begins."""
        return self.start + self.size + self.ended


@frozen
class Skipped:
    """How many lines were passed over, where that led, and whether the bytes to look at ran out before."""

    lines: int
    position: int
    at_end: bool


def skip_lines(file: int, start: int, count: int | None, poll: Poll, max_bytes: int | None = None) -> Skipped:
    """Pass over ``count`` lines (``None``: all that there are) from ``start``, and say how many there were.

    ``at_end`` is true where the file ended; with ``max_bytes``, looking stops there.
    """
    lines, position, last = 0, start, b"\n"
    while count is None or lines < count:
        poll()
        block = os.pread(file, BLOCK_BYTES, position)
        if not block:
            return Skipped(lines + (last != b"\n"), position, True)
        found = block.count(b"\n")
        if count is not None and lines + found >= count:
            return Skipped(count, position + _after_newline(block, count - lines), False)
        lines, position, last = lines + found, position + len(block), block[-1:]
        if max_bytes is not None and position - start >= max_bytes:
            return Skipped(lines, position, False)
    return Skipped(lines, position, False)


def _after_newline(block: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        at = block.index(b"\n", at) + 1
    return at


def lines_from(file: int, start: int, keep: int, poll: Poll) -> Iterator[RawLine]:
    """Give line after line from ``start``, at most ``keep`` bytes of each."""
    position = start
    block, base = b"", start
    while True:
        head, size, ended = bytearray(), 0, False
        while not ended:
            if position >= base + len(block):
                poll()
                block, base = os.pread(file, BLOCK_BYTES, position), position
                if not block:
                    break
            here = position - base
            newline = block.find(b"\n", here)
            ended = newline >= 0
            stop = newline if ended else len(block)
            head += block[here : min(stop, here + keep - len(head))]
            size += stop - here
            position += stop - here + ended
        if not ended and not size:
            return
        yield RawLine(position - size - ended, bytes(head), size, ended)
