"""What a server writes to stderr goes to the host's log, a bounded number of lines a second."""

from __future__ import annotations

import logging
from typing import Final

import trio

from dsh_plugin_mcp_client._lines import Lines

_CHUNK: Final = 65536
_LINE: Final = 2000
#: So many lines are logged within a second; what is more is counted.
_LINES_A_SECOND: Final = 50


async def log_stderr(pipe: trio.abc.ReceiveStream, logger: logging.Logger) -> None:
    """Log each line until the pipe ends."""
    lines, allowance = Lines(_LINE), _Allowance(logger)
    try:
        while chunk := await pipe.receive_some(_CHUNK):
            for line, _ in lines.feed(bytes(chunk)):
                allowance.log(line)
        for line, _ in lines.finish():
            allowance.log(line)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    finally:
        allowance.settle()


class _Allowance:
    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._since = trio.current_time()
        self._logged = 0
        self._dropped = 0

    def log(self, line: bytes) -> None:
        now = trio.current_time()
        if now - self._since >= 1:
            self.settle()
            self._since, self._logged = now, 0
        if self._logged >= _LINES_A_SECOND:
            self._dropped += 1
            return
        self._logged += 1
        self._logger.info("stderr: %s", _readable(line))

    def settle(self) -> None:
        """Say how much was left out."""
        if self._dropped:
            self._logger.warning("stderr: %d more lines within a second are left out", self._dropped)
            self._dropped = 0


def _readable(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip()
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
