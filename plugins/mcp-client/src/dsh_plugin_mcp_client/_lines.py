"""Bytes in, lines out, and never more held than one line may have. No I/O."""

from __future__ import annotations


class Lines:
    """Splits what arrives at its newlines. What of a line exceeds ``most`` bytes is dropped, and the line marked."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._rest = bytearray()
        self._cut = False

    def feed(self, chunk: bytes) -> list[tuple[bytes, bool]]:
        """The lines that ``chunk`` completes, each with whether it was too long."""
        *ends, rest = chunk.split(b"\n")
        lines = [self._complete(end) for end in ends]
        self._hold(rest)
        return lines

    def finish(self) -> list[tuple[bytes, bool]]:
        """The line that the end of the input completes, if there is one."""
        return [self._complete(b"")] if self._rest else []

    def _complete(self, end: bytes) -> tuple[bytes, bool]:
        self._hold(end)
        line, cut = bytes(self._rest), self._cut
        self._rest.clear()
        self._cut = False
        return line, cut

    def _hold(self, part: bytes) -> None:
        room = self.most - len(self._rest)
        self._rest += part[:room]
        self._cut = self._cut or len(part) > room
