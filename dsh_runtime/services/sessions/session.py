"""A session while it is open, and a call that has no result yet."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Hashable

from attrs import define


def new_session_id(now: int) -> str:
    """An id that people can read and that sorts by time: ``20261130-025502-1f3a9c07``."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime(now / 1000)) + secrets.token_hex(4)


class Session:
    """One agent's session in the log. Made by ``sessions.open_session``.

    ``number`` is its row in the log, ``calls`` how many of its calls have no result yet.
    """

    def __init__(
        self,
        id: str,
        number: int,
        key: Hashable | None,
        label: str,
        front_door: str,
        close: Callable[[Session], Awaitable[None]],
    ) -> None:
        self.id = id
        self.number = number
        self.key = key
        self.label = label
        self.front_door = front_door
        self.calls = 0
        self.closing = False
        self._close = close
        self._seq = 1  # session/started

    def next_seq(self) -> int:
        """The place of the next event."""
        self._seq += 1
        return self._seq

    async def close(self) -> None:
        """End the session; if calls are under way, when the last of them has its result."""
        await self._close(self)

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.label!r}>"


@define(eq=False)
class OpenCall:
    """A call that has no result yet: its session, its place there, and when it began."""

    session: Session
    seq: int
    call_id: str
    began: float
