"""The users that programs run as, where the host is root: one each, which nobody else has.

With a user of its own a program can signal, trace and look into nobody, the system's limit on processes counts its own
alone, and all that it started can be killed in one step.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from typing import Final

from dsh_runtime.code_mode.runtime.errors import CodeRuntimeError

#: First user and number of users: a range that is assigned to nothing (systemd lists it as unused), then, for a
#: container that maps fewer, one that systemd gives to services for as long as they run.
_RANGES: Final = ((0x70000000, 0x04000000), (61_184, 4_336))
_OWN_RANGE: Final = 65_536

Mapping = tuple[int, int]


def choose_range(first: int | None) -> Mapping | None:
    """Where users are taken from; ``None`` if the host is not root, and programs run as its own user."""
    if os.geteuid() != 0:
        return None
    wanted = _RANGES if first is None else ((first, _OWN_RANGE),)
    mapped = [_mapped("/proc/self/uid_map"), _mapped("/proc/self/gid_map")]
    for start, count in wanted:
        if all(_holds(ranges, start, count) for ranges in mapped):
            return start, count
    raise CodeRuntimeError(
        "programs cannot be run: the host is root, and there is no user to run them as in this container; "
        "set first_user to the first of 65,536 users that it has, or run the host as an unprivileged user"
    )


def _mapped(path: str) -> list[Mapping]:
    with open(path) as file:
        return [(int(start), int(count)) for start, _, count in (line.split() for line in file)]


def _holds(ranges: Iterable[Mapping], start: int, count: int) -> bool:
    return any(first <= start and start + count <= first + size for first, size in ranges)


class Users:
    """Lends users of a range."""

    def __init__(self, users: Mapping | None) -> None:
        self._range = users
        self._lent: set[int] = set()

    def lend(self) -> int | None:
        """A user that no other program has at the moment; ``None`` stands for the host's own."""
        if self._range is None:
            return None
        start, count = self._range
        while (user := start + secrets.randbelow(count)) in self._lent:
            pass
        self._lent.add(user)
        return user

    def take_back(self, user: int | None) -> None:
        """The program is gone."""
        self._lent.discard(user) if user is not None else None
