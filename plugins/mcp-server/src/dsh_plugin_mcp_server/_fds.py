"""The process's stdin and stdout, kept from everybody else while a client is served on them.

Strategy: the wire moves to private descriptors that no subprocess inherits. Descriptor 0 then reads the null device and
descriptor 1 writes to stderr, so that neither ``print``, nor a subprocess, nor C code can reach the client.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Final

from dsh_hookspecs import HarnessError

_FIRST_PRIVATE: Final = 3
_claim = threading.Lock()


@contextlib.contextmanager
def claimed_stdio() -> Iterator[tuple[int, int]]:
    """Private descriptors for the wire, in and out; the standard ones come back at the end."""
    if not _claim.acquire(blocking=False):
        raise HarnessError(
            "stdin and stdout of this process serve an MCP client already; a process serves one at a time on them",
            code="MCP_STDIO_TAKEN",
        )
    try:
        _check_open()
        with _moved(0, _open_null) as stdin, _moved(1, _open_stderr) as stdout:
            try:
                yield stdin, stdout
            finally:
                _flush_strays()
    finally:
        _claim.release()


@contextlib.contextmanager
def _moved(fd: int, open_substitute: Callable[[], int]) -> Iterator[int]:
    private = _private_copy(fd)
    try:
        _put(open_substitute(), fd)
        try:
            yield private
        finally:
            os.dup2(private, fd)
    finally:
        os.close(private)


def _check_open() -> None:
    """A standard descriptor that was closed when the process began may be anything by now; Python knows."""
    closed = [name for name in ("stdin", "stdout") if getattr(sys, f"__{name}__") is None]
    if closed:
        raise HarnessError(
            f"an MCP client is served on stdin and stdout, but this process began without {' and '.join(closed)}; "
            "start it with both connected to the client",
            code="MCP_NO_STDIO",
        )


def _private_copy(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_PRIVATE)


def _put(substitute: int, fd: int) -> None:
    try:
        os.dup2(substitute, fd)
    finally:
        os.close(substitute)


def _open_null() -> int:
    return os.open(os.devnull, os.O_RDONLY)


def _open_stderr() -> int:
    try:
        return os.dup(2)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def _flush_strays() -> None:
    """Send what Python's and C's buffers hold of stray output to stderr, before descriptor 1 is the client again."""
    for stream in filter(None, (sys.stdout, sys.__stdout__)):
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)
