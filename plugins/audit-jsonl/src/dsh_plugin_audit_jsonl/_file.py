"""The file: whole lines, appended by any number of processes, moved aside when it is long enough.

Strategy: whoever writes holds the file's lock, and looks first whether the path still leads to the file it has open:
another process, or a log rotation from outside, may have moved it. So no line goes into a file that has been moved, and
no two processes move it twice. Lines go out together, as many as fit, in one write: a thread that writes them one by
one waits for the interpreter's lock after each, behind a busy event loop. A file that does not end with a line break
has been cut short (a full disk, a crash); the next line then begins with one, so that one broken line does not take
another with it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from attrs import frozen

_MODE: Final = 0o600
_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW


@frozen
class Progress:
    """How many lines have been written, and what stopped the others."""

    written: int
    error: OSError | None = None


class AuditFile:
    """An append-only file with a bounded history. Not for use by several threads at once."""

    def __init__(self, path: Path, *, max_bytes: int, keep: int, fsync: bool = False) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._keep = keep
        self._fsync = fsync
        self._fd: int | None = None
        self._unsynced = False

    @property
    def unsynced(self) -> bool:
        """Whether lines have been written that should be on the disk and may not be."""
        return self._fsync and self._unsynced

    def open(self) -> None:
        """Open the file, or make it; :class:`OSError` if that fails."""
        self._unlock(self._locked())

    def append(self, lines: Iterable[bytes]) -> Progress:
        """Write lines, each of which ends with a line break, until all are written or one fails."""
        waiting, written = [*lines], 0
        try:
            fd = self._locked()
            try:
                while written < len(waiting):
                    fd = self._with_room(fd, len(waiting[written]))
                    group = self._fitting(fd, waiting[written:])
                    self._unsynced = True
                    complete = _write(fd, group)
                    written += complete
                    if complete < len(group):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if self._fsync:
                    self._sync(fd)
            finally:
                if self._fd is not None:
                    self._unlock(self._fd)
        except OSError as error:
            return Progress(written, error)
        return Progress(written)

    def close(self) -> None:
        """Bring everything to the disk and close the file."""
        if self._fd is None:
            return
        try:
            self._sync(self._fd)
        finally:
            self._release(self._fd)

    def _locked(self) -> int:
        """The file that the path leads to, open and locked."""
        while True:
            fd = self._fd = _open(self.path) if self._fd is None else self._fd
            fcntl.flock(fd, fcntl.LOCK_EX)
            if _leads_to(self.path, fd):
                return fd
            self.close()

    def _unlock(self, fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)

    def _with_room(self, fd: int, length: int) -> int:
        """A locked file that has room for a line: the same, or a new one after the full one has been moved."""
        size = os.fstat(fd).st_size
        if not size or size + length <= self._max_bytes:
            return fd
        self._sync(fd)
        self._move_aside()
        self._release(fd)
        return self._locked()

    def _fitting(self, fd: int, lines: Sequence[bytes]) -> Sequence[bytes]:
        """The first lines, as many as there is room for: one at least."""
        room = self._max_bytes - os.fstat(fd).st_size
        return lines[: max(1, sum(end <= room for end in accumulate(map(len, lines))))]

    def _move_aside(self) -> None:
        """Move the file to ``path.1``, and older ones on as far as there is no gap; the oldest is dropped."""
        numbers = range(1, self._keep)
        first_free = next((number for number in numbers if not self._old(number).exists()), self._keep)
        for number in range(first_free - 1, 0, -1):
            os.replace(self._old(number), self._old(number + 1))
        os.replace(self.path, self._old(1))

    def _old(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _sync(self, fd: int) -> None:
        if self._unsynced:
            os.fsync(fd)
            self._unsynced = False

    def _release(self, fd: int) -> None:
        self._fd = None
        os.close(fd)


def _open(path: Path) -> int:
    fd = os.open(path, _FLAGS, _MODE)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "It is no regular file", str(path))
        if stat.S_IMODE(mode) != _MODE:
            os.fchmod(fd, _MODE)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _leads_to(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _write(fd: int, lines: Sequence[bytes]) -> int:
    """Append lines with one write; how many are complete. One that lacks but its line break is: the next brings it."""
    size = os.fstat(fd).st_size
    begin = b"\n" if size and os.pread(fd, 1, size - 1) != b"\n" else b""
    written = os.write(fd, begin + b"".join(lines)) - len(begin)
    return sum(end - 1 <= written for end in accumulate(map(len, lines)))
