"""The few system calls that Python has no functions for."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

_CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int, more: object = 0) -> int:
    """Set something about this process, or ask for it."""
    argument = more if more != 0 else ctypes.c_ulong(0)
    outcome: int = _libc.prctl(option, ctypes.c_ulong(value), argument, ctypes.c_ulong(0), ctypes.c_ulong(0))
    if outcome < 0:
        raise last_error()
    return outcome


def syscall(number: int, *arguments: object) -> int:
    """A system call by its number."""
    outcome: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if outcome < 0:
        raise last_error()
    return outcome


def last_error() -> OSError:
    """The error of the last system call."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def drop_capabilities() -> None:
    """Give up every capability that this process may have been given."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if _libc.capset(header, nothing) != 0:
        raise last_error()
