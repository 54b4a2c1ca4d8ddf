"""A stack as it was while no Python code but that one could run.

``faulthandler`` has a thread that needs no interpreter. It is told to write down all stacks in a while, and told again
before that while is over; only where nobody could tell it in time is there something to read.
"""

from __future__ import annotations

import faulthandler
import os
import re
import tempfile
from typing import IO, Final

from dsh_runtime.loader.errors import Location
from dsh_runtime.loader.ownership import Spot

_MAX_BYTES: Final = 200_000
_THREAD: Final = re.compile(r"^(?:Current thread|Thread) 0x0*([0-9a-f]+)")
_FRAME: Final = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


class Dump:
    """Stacks of this process. The process has one such alarm: whoever sets another takes it away."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by close()

    def arm(self, seconds: float) -> None:
        """Forget what was written, and have the stacks written in so many seconds."""
        if os.lseek(self._file.fileno(), 0, os.SEEK_CUR):
            self._file.seek(0)
            self._file.truncate()
        faulthandler.dump_traceback_later(seconds, file=self._file.fileno())

    def read(self, thread: int) -> list[Spot]:
        """The stack of a thread as it was written down, the innermost place first; nothing if none was."""
        end = self._file.seek(0, os.SEEK_END)
        self._file.seek(0)
        text = self._file.read(min(end, _MAX_BYTES)).decode("utf-8", "replace")
        self._file.seek(end)
        return stack_in(text, thread)

    def close(self) -> None:
        """Have nothing written any more."""
        faulthandler.cancel_dump_traceback_later()
        self._file.close()


def stack_in(text: str, thread: int) -> list[Spot]:
    """The stack of one thread in what ``faulthandler`` writes."""
    spots: list[Spot] = []
    wanted = False
    for line in text.splitlines():
        header, frame = _THREAD.match(line), _FRAME.match(line)
        if header is not None:
            wanted = int(header[1], 16) == thread
        elif frame is not None and wanted:
            spots.append(Spot(Location(frame[1], int(frame[2])), frame[3]))
    return spots
