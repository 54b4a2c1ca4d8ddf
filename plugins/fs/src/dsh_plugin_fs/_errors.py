"""The errors of the file tools, each with a stable code."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from dsh_hookspecs import HarnessError

Code: TypeAlias = Literal[
    "FS_BAD_EDIT",
    "FS_BAD_PATH",
    "FS_BAD_PATTERN",
    "FS_BAD_WINDOW",
    "FS_CHANGED",
    "FS_CLOSED",
    "FS_DENIED",
    "FS_EXCLUDED",
    "FS_IO",
    "FS_IS_BINARY",
    "FS_LINK_LOOP",
    "FS_NOT_A_DIRECTORY",
    "FS_NOT_A_FILE",
    "FS_NOT_FOUND",
    "FS_NOT_UNIQUE",
    "FS_NOT_UTF8",
    "FS_NO_MATCH",
    "FS_OUTSIDE_ROOT",
    "FS_TIMEOUT",
    "FS_TOO_LARGE",
]


class FsError(HarnessError):
    """A file call that breaks a rule, or that the system refused; ``code`` says which."""

    default_code = "FS_IO"

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message, code=code)


_MEANINGS: dict[int, tuple[Code, str]] = {
    errno.ENOENT: ("FS_NOT_FOUND", "does not exist; list what does with fs_glob"),
    errno.ESTALE: ("FS_NOT_FOUND", "does not exist any more; list what does with fs_glob"),
    errno.EACCES: ("FS_DENIED", "may not be accessed: the system's permissions forbid it"),
    errno.EPERM: ("FS_DENIED", "may not be changed: the system's permissions forbid it"),
    errno.EROFS: ("FS_DENIED", "lies on a read-only file system"),
    errno.EISDIR: ("FS_NOT_A_FILE", "is a directory; name a file in it"),
    errno.ENXIO: ("FS_NOT_A_FILE", "is no regular file; only regular files can be opened"),
    errno.ENOTDIR: ("FS_NOT_A_DIRECTORY", "leads through something that is no directory"),
    errno.ELOOP: ("FS_CHANGED", "was changed while it was being opened; try again"),
    errno.ENAMETOOLONG: ("FS_BAD_PATH", "has a name that is too long for the file system"),
}


def from_os_error(error: OSError, shown: str) -> FsError:
    """Translate what the system refused into one clear sentence about ``shown``."""
    if error.errno in _MEANINGS:
        code, meaning = _MEANINGS[error.errno]
        return FsError(code, f"'{shown}' {meaning}")
    return FsError("FS_IO", f"'{shown}' could not be used: {os.strerror(error.errno or errno.EIO)}")


@contextmanager
def os_errors(shown: str) -> Iterator[None]:
    """Raise ``OSError`` from the block as an ``FsError`` about ``shown``."""
    try:
        yield
    except OSError as error:
        raise from_os_error(error, shown) from error
