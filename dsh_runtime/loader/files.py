"""Reading a file that somebody else named: regular files only, and never more than a limit."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class UnreadableFileError(Exception):
    """Why a file cannot be read, as the end of a sentence that begins with its name."""


def read_regular_file(path: Path, limit: int) -> bytes:
    """Return the bytes of a regular file of at most ``limit`` bytes; a pipe or a device is never waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableFileError("is no regular file")
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise UnreadableFileError(_reason(error)) from error
    if len(data) > limit:
        raise UnreadableFileError(f"is larger than {limit // 1024} KiB, the most that is read")
    return data


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, IsADirectoryError):
        return "is no regular file"
    if isinstance(error, PermissionError):
        return "may not be read (permission denied)"
    return f"cannot be read ({getattr(error, 'strerror', None) or error})"
