"""Replace files whole: a new file is written beside the old one and takes its name in one step.

Whoever reads meanwhile sees the old bytes or the new ones. Everything happens in the directory that the walk holds
open, so a directory that is moved or swapped meanwhile changes nothing about where the bytes go.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import ELOOP

from attrs import frozen

from dsh_plugin_fs._edit import replace_once
from dsh_plugin_fs._errors import FsError, os_errors
from dsh_plugin_fs._hunks import Hunks, hunks_between
from dsh_plugin_fs._limits import Limits, Poll, never
from dsh_plugin_fs._roots import Roots
from dsh_plugin_fs._text import (
    HEAD_BYTES,
    LineEndings,
    Text,
    check_encodable,
    decode,
    line_endings,
    read_up_to,
    with_endings,
)
from dsh_plugin_fs._walk import Walk

TEMPORARY_PREFIX = ".dsh-fs-"
TEMPORARY_SUFFIX = ".tmp"
_LOCK_WAIT = 0.05


@frozen
class Written:
    """A file that was written: ``hunks`` is what changed, ``None`` where the old content was no text to compare."""

    path: str
    created: bool
    size: int
    line_endings: LineEndings
    hunks: Hunks | None


@frozen
class OldFile:
    """The file that is to be replaced: all its bytes, or only its head if it is ``too_large``."""

    data: bytes
    seen: os.stat_result
    too_large: bool

    @property
    def text(self) -> Text | None:
        """What the file says, as far as it was read; ``None`` if it is binary."""
        data = self.data[: self.data.rfind(b"\n") + 1] if self.too_large else self.data
        try:
            return decode(data, "")
        except FsError:
            return None


class Writer:
    """Writes and edits, one at a time."""

    def __init__(self, roots: Roots, limits: Limits) -> None:
        self._roots = roots
        self._limits = limits
        self._lock = threading.Lock()

    def write(self, path: str, content: str, poll: Poll = never) -> Written:
        """Give the file ``content``. An old file keeps its mode, its byte order mark and its line endings."""
        check_encodable(content, "'content'")
        self._check_size(len(content), path)

        def new_text(old: OldFile | None, shown: str) -> Text:
            text = old.text if old else None
            if text is None:
                return Text(content)
            return Text(with_endings(content.removeprefix("\ufeff"), line_endings(text.text)), text.bom)

        return self._replace(path, new_text, poll, create=True)

    def edit(self, path: str, old_text: str, new_text: str, poll: Poll = never) -> Written:
        """Put ``new_text`` in the place of ``old_text``, which must occur exactly once."""
        check_encodable(old_text, "'old_text'")
        check_encodable(new_text, "'new_text'")

        def edited(old: OldFile | None, shown: str) -> Text:
            if old is None:
                raise FsError("FS_NOT_FOUND", f"'{shown}' does not exist; create it with fs_write")
            if old.too_large:
                self._check_size(old.seen.st_size, shown)
            text = decode(old.data, shown)
            return Text(replace_once(text.text, old_text, new_text, shown), text.bom)

        return self._replace(path, edited, poll, create=False)

    def _replace(
        self, path: str, change: Callable[[OldFile | None, str], Text], poll: Poll, *, create: bool
    ) -> Written:
        target = self._roots.locate(path)
        if target.is_directory:
            raise FsError("FS_NOT_A_FILE", f"path '{path}' names a directory; name a file in it")
        with self._alone(poll), os_errors(path), Walk(target) as walk:
            name = walk.to_parent(target.names, create=create)
            shown = self._roots.show(walk.root, [*walk.names, name])
            old = _read_old(walk, name, self._limits.max_write_bytes)
            text = change(old, shown)
            data = text.encode()
            self._check_size(len(data), shown)
            poll()
            _put(walk.directory, name, data, old, shown)
            return Written(shown, old is None, len(data), line_endings(text.text), self._hunks(old, text))

    def _hunks(self, old: OldFile | None, new: Text) -> Hunks | None:
        if old is None:
            return hunks_between(None, new.text, self._limits.max_diff_chars)
        before = None if old.too_large else old.text
        return hunks_between(before.text, new.text, self._limits.max_diff_chars) if before else None

    def _check_size(self, size: int, shown: str) -> None:
        most = self._limits.max_write_bytes
        if size > most:
            message = f"'{shown}' would be or is {size:,} bytes large; files of up to {most:,} bytes can be written"
            raise FsError("FS_TOO_LARGE", message)

    @contextmanager
    def _alone(self, poll: Poll) -> Iterator[None]:
        while not self._lock.acquire(timeout=_LOCK_WAIT):
            poll()
        try:
            yield
        finally:
            self._lock.release()


def is_temporary(name: str) -> bool:
    """Say whether ``name`` is one that a write in progress uses."""
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)


def _read_old(walk: Walk, name: str, max_bytes: int) -> OldFile | None:
    """Read the file that is to be replaced. It is opened for writing too, so that the system says if that may be."""
    try:
        file = walk.open_here(name, os.O_RDWR)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == ELOOP:
            raise FsError("FS_CHANGED", f"'{name}' was changed while it was being opened; try again") from error
        raise
    try:
        seen = os.fstat(file)
        too_large = seen.st_size > max_bytes
        data = read_up_to(file, HEAD_BYTES if too_large else seen.st_size)
        return OldFile(data, seen, too_large)
    finally:
        os.close(file)


def _put(directory: int, name: str, data: bytes, old: OldFile | None, shown: str) -> None:
    """Write ``data`` beside the file ``name`` and move it there; on failure nothing is left."""
    temporary = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(temporary, flags, 0o600 if old else 0o666, dir_fd=directory)
    try:
        try:
            _write_all(file, data)
            if old:
                _keep_owner_and_mode(file, old.seen)
            os.fsync(file)
        finally:
            os.close(file)
        _check_unchanged(directory, name, old, shown)
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    with suppress(OSError):
        os.fsync(directory)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _keep_owner_and_mode(file: int, old: os.stat_result) -> None:
    mode = stat.S_IMODE(old.st_mode)
    own = os.fstat(file)
    if (own.st_uid, own.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(file, old.st_uid, old.st_gid)
        except OSError:
            mode &= 0o777  # run-as bits mean another owner now
    os.fchmod(file, mode)


def _check_unchanged(directory: int, name: str, old: OldFile | None, shown: str) -> None:
    """Refuse to replace what someone else has written since it was read."""
    try:
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        now = None
    if _identity(now) != _identity(old.seen if old else None):
        message = f"'{shown}' was changed by someone else meanwhile; nothing was written: read it again"
        raise FsError("FS_CHANGED", message)


def _identity(seen: os.stat_result | None) -> tuple[int, ...] | None:
    return seen and (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_mode)
