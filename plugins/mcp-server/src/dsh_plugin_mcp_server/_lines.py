"""Bytes in, lines out, and never more than one line's worth held. No I/O.

``None`` stands in the place of a line that was longer than allowed.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field


@define
class LineSplitter:
    """Splits what arrives at its newlines. A line that is too long is dropped as it arrives."""

    most: int
    _rest: bytearray = field(factory=bytearray, init=False)
    _dropping: bool = field(default=False, init=False)

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """The lines that ``chunk`` completes, without their newlines and without blank ones."""
        return list(self._lines(chunk))

    def finish(self) -> list[bytes | None]:
        """The line that the end of the input completes."""
        return self.feed(b"\n")

    def _lines(self, chunk: bytes) -> Iterator[bytes | None]:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield from self._complete(end)
        self._hold(rest)

    def _complete(self, end: bytes) -> Iterator[bytes | None]:
        self._hold(end)
        line = bytes(self._rest)
        self._rest.clear()
        if self._dropping:
            self._dropping = False
            yield None
        elif line.strip():
            yield line

    def _hold(self, part: bytes) -> None:
        if not self._dropping:
            self._rest += part
            self._dropping = len(self._rest) > self.most
        if self._dropping:
            self._rest.clear()
