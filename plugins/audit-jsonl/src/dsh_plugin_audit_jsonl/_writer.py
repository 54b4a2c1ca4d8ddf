"""The task that brings records from the spool to the file, in a thread."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from typing import Final

import trio
from dsh_hookspecs import HarnessError

from dsh_plugin_audit_jsonl._file import AuditFile, Progress
from dsh_plugin_audit_jsonl._line import Lines
from dsh_plugin_audit_jsonl._spool import Item, Spool

_BATCH: Final = 1024
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
#: How long the last records are tried for when the plugin unloads.
_LAST_TRY: Final = 5.0


class Writer:
    """Writes what is spooled, for as long as it takes."""

    def __init__(self, spool: Spool, file: AuditFile, lines: Lines, log: logging.Logger) -> None:
        self._spool = spool
        self._file = file
        self._lines = lines
        self._log = log
        self._pause = _FIRST_PAUSE
        self._wake = trio.Event()
        # A place of its own: tools that fill the host's threads must not keep records from being written.
        self._limiter = trio.CapacityLimiter(1)

    async def open(self) -> None:
        """Open the file; a clear error if that fails."""
        try:
            await trio.to_thread.run_sync(self._file.open, limiter=self._limiter)
        except OSError as error:
            raise HarnessError(
                f"the audit log {self._file.path} cannot be opened: {_reason(error)}; "
                "give a 'path' in a folder that exists and that this process may write to"
            ) from error

    def wake(self) -> None:
        """Something has been spooled."""
        self._wake.set()

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._write_all()
            self._wake = trio.Event()
            await self._wake.wait()

    async def close(self) -> None:
        """Write the last records and close the file; what cannot be written goes to the log."""
        with trio.move_on_after(_LAST_TRY):
            await self._write_all()
        left = self._spool.begin(len(self._spool))
        for item in left:
            self._log.error("not in the audit log: %s", self._lines.line(item).decode().strip())
        await trio.to_thread.run_sync(self._file.close, limiter=self._limiter)
        if left:
            why = self._spool.trouble or f"{self._file.path} took too long to write"
            raise HarnessError(f"{why}; the last {len(left)} records are in the host's log instead")

    async def _write_all(self) -> None:
        while len(self._spool) or self._file.unsynced:
            if not await self._write():
                await trio.sleep(self._pause)
                self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    async def _write(self) -> bool:
        """Write some records; whether all went well."""
        batch = self._spool.begin(_BATCH)
        progress = await trio.to_thread.run_sync(self._append, batch, limiter=self._limiter)
        self._spool.done(progress.written)
        self._report(progress.error)
        return progress.error is None

    def _append(self, batch: Sequence[Item]) -> Progress:
        return self._file.append(map(self._lines.line, batch))

    def _report(self, error: OSError | None) -> None:
        """Tell of trouble when it comes and when it goes."""
        before = self._spool.trouble
        if error is not None:
            trouble = self._spool.trouble = f"{self._file.path} cannot be written ({_reason(error)})"
            if trouble != before:
                self._log.error("%s; no call is let through until it can. It is tried again.", trouble)
        elif before is not None:
            self._spool.trouble = None
            self._pause = _FIRST_PAUSE
            self._log.warning("%s can be written again; calls are let through", self._file.path)


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "It is a symbolic link"
    return error.strerror or type(error).__name__
