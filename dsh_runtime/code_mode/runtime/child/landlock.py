"""Landlock: what of the file system a program may touch, and that it may signal and trace nobody else.

A kernel without it (or with an older one) leaves out what it does not know; ``restrict`` tells which version it was.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable

from .system import syscall

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
_REMOVE_AND_MAKE = 0x1FF0
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV

READ = READ_FILE | READ_DIR
RUN = READ | EXECUTE
CHANGE = READ | WRITE_FILE | _REMOVE_AND_MAKE | _TRUNCATE

#: The first version that keeps a program from binding and connecting TCP sockets, and from signalling others.
NETWORK_VERSION, SIGNAL_VERSION = 4, 6
_NETWORK = 3
_SCOPED = 3


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version of Landlock that the kernel has; 0 for none."""
    try:
        return syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def handled(level: int) -> int:
    """The rights over files that this version can take away."""
    rights = EXECUTE | WRITE_FILE | READ | _REMOVE_AND_MAKE
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        if level >= since:
            rights |= right
    return rights


def prepare(level: int, rules: Iterable[tuple[str | int, int]]) -> int:
    """A rule set that allows nothing but ``rules`` (a path or descriptor, and rights); what does not exist is left out.

    It is made before a process gives its user up, since that one may not be able to reach the paths.
    """
    rights = handled(level)
    network = _NETWORK if level >= NETWORK_VERSION else 0
    scoped = _SCOPED if level >= SIGNAL_VERSION else 0
    attributes = _Ruleset(rights, network, scoped)
    ruleset = syscall(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)), ctypes.c_uint32(0))
    for place, allowed in rules:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            _allow(ruleset, place, allowed & rights)
    return ruleset


def _allow(ruleset: int, place: str | int, rights: int) -> None:
    descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC) if isinstance(place, str) else place
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        rule = _Beneath(rights, descriptor)
        syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        if isinstance(place, str):
            os.close(descriptor)


def restrict(ruleset: int) -> None:
    """Put a rule set in force for this thread and whatever it starts, for good."""
    syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)
