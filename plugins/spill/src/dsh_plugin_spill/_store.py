"""The folder that texts are kept in: bounded, private, written whole or not at all.

All file operations are relative to the folder's own descriptor and follow no link, and a name comes from digests alone:
nothing can lead outside. Everything here blocks, and may run in several threads at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from dsh_hookspecs import HarnessError

from dsh_plugin_spill._cut import prefix

_SCHEME: Final = "spill:"
_ENDING: Final = ".txt"
_UNFINISHED: Final = ".part"
#: Seconds after which a file that was never finished is taken for one that never will be.
_ABANDONED: Final = 600


class SpillError(HarnessError):
    """A text cannot be stored, or none is stored under a locator."""

    default_code = "SPILL_FAILED"


class Window(NamedTuple):
    """A part of a stored text: where it begins, the text, where the next part begins, and the bytes in all."""

    offset: int
    text: str
    end: int
    total: int


class _File(NamedTuple):
    changed: int
    name: str
    size: int


class Store:
    """A folder of texts. ``limit`` bounds the bytes in it: the oldest texts go first."""

    def __init__(self, folder: Path, limit: int) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            why = f"the spill folder {str(folder)!r} cannot be used ({error.strerror}); name one that can be written to"
            raise SpillError(why) from error
        self._limit = limit
        self._lock = threading.Lock()
        self._written = 0

    def close(self) -> None:
        """Give the folder back; what is in it stays."""
        with self._lock:
            folder, self._folder = self._folder, -1
            if folder >= 0:
                os.close(folder)

    def put(self, text: str, call_id: str) -> str:
        """Store a text; give back its locator. :class:`SpillError` or :class:`OSError` if that cannot be."""
        data = text.encode()
        if len(data) > self._limit:
            raise SpillError(f"the text has {len(data)} bytes, more than the {self._limit} that the store takes")
        key = f"{hashlib.sha256(data).hexdigest()[:40]}-{hashlib.sha256(call_id.encode()).hexdigest()[:12]}"
        with self._lock:
            self._check_open()
            self._make_room(len(data), key + _ENDING)
            self._write(key + _ENDING, data)
        return _SCHEME + key

    def read(self, locator: str, offset: int, limit: int) -> Window:
        """A part of a stored text that begins and ends with whole characters."""
        with self._lock, os.fdopen(self._open(locator), "rb") as file:
            total = os.fstat(file.fileno()).st_size
            file.seek(min(offset, total))
            # Three bytes may go on with a character that began before, three may begin one that does not fit.
            data = file.read(limit + 6)
        skipped = _skipped(data)
        part = prefix(data[skipped:], limit)
        start = min(offset, total) + skipped
        return Window(start, part.decode(), start + len(part), total)

    def _open(self, locator: str) -> int:
        self._check_open()
        if _locator_pattern().fullmatch(locator):
            with contextlib.suppress(FileNotFoundError):
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                name = locator.removeprefix(_SCHEME) + _ENDING
                return _regular(os.open(name, flags, dir_fd=self._folder), locator)
        raise SpillError(
            f"no text is stored under {locator[:100]!r}; use a locator as it stands in a result (old ones are deleted)",
            code="UNKNOWN_LOCATOR",
        )

    def _check_open(self) -> None:
        if self._folder < 0:
            raise SpillError("the store is closed: its plugin has been unloaded")

    def _write(self, name: str, data: bytes) -> None:
        """Write beside, then put in place: nobody sees half a file."""
        self._written += 1
        beside = f".{name}.{os.getpid()}.{self._written}{_UNFINISHED}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(beside, flags, 0o600, dir_fd=self._folder), "wb") as file:
                file.write(data)
            os.replace(beside, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            self._delete(beside)
            raise

    def _make_room(self, size: int, name: str) -> None:
        """Delete the oldest texts until one of ``size`` fits in; ``name`` itself is about to be replaced."""
        files = sorted(file for file in self._files() if file.name != name)
        over = sum(file.size for file in files) + size - self._limit
        for file in files:
            if over <= 0:
                return
            self._delete(file.name)
            over -= file.size

    def _files(self) -> Iterator[_File]:
        """The store's own files; those that were never finished are deleted on the way."""
        for name in os.listdir(self._folder):
            with contextlib.suppress(FileNotFoundError):
                if name.endswith(_UNFINISHED):
                    if self._stat(name).st_mtime < time.time() - _ABANDONED:
                        self._delete(name)
                elif _locator_pattern().fullmatch(_SCHEME + name.removesuffix(_ENDING)):
                    found = self._stat(name)
                    yield _File(found.st_mtime_ns, name, found.st_size)

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._folder, follow_symlinks=False)

    def _delete(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._folder)


@cache
def _locator_pattern() -> re.Pattern[str]:
    return re.compile(_SCHEME + r"[0-9a-f]{40}-[0-9a-f]{12}")


def _regular(descriptor: int, locator: str) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SpillError(f"what stands under {locator!r} in the store is no file of its own", code="UNKNOWN_LOCATOR")
    return descriptor


def _skipped(data: bytes) -> int:
    """How many bytes go on with a character that began before."""
    return next((index for index, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), min(len(data), 4))
