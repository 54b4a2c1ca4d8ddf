"""The session of a client in the host's log, where there is one.

It begins with the first thing that the client asks, under the name that the client gives itself then: a name that
nobody has checked, for people to read. On a server with tokens the token's own name stands in front of it.
"""

from __future__ import annotations

from typing import Any, Final

import trio
from attrs import define, field
from dsh_hookspecs import Context
from mcp_types import InitializeRequestParams

from dsh_runtime.cards import visible

_NAMELESS: Final = "MCP client"
#: So much of a name is kept, and of a version.
_LONGEST: Final = 80


@define(eq=False)
class Record:
    """Begins one client's session once, and ends it."""

    _ctx: Context
    _agent: object
    _owner: str | None
    _turn: trio.Lock = field(factory=trio.Lock, init=False)
    _session: Any = field(default=None, init=False)
    _ended: bool = field(default=False, init=False)

    async def begin(self, params: InitializeRequestParams | None) -> None:
        """Have the session on record, before the client gets an answer. Nobody stops half-way."""
        if self._session is not None:
            return
        sessions = self._ctx.get("sessions")
        if sessions is None:
            return
        with trio.CancelScope(shield=True):
            async with self._turn:
                if self._session is None and not self._ended:
                    label = label_of(params, self._owner)
                    self._session = await sessions.open_session(self._agent, label=label, front_door="mcp")

    async def end(self) -> None:
        """End the session; if calls are under way, with the last of them."""
        with trio.CancelScope(shield=True):
            async with self._turn:
                self._ended = True
                if self._session is not None:
                    await self._session.close()


def label_of(params: InitializeRequestParams | None, owner: str | None) -> str:
    """How the log names a client: by what it says of itself, bounded and safe to print."""
    name = _NAMELESS
    if params is not None:
        info = params.client_info
        name = " ".join(part for text in (info.name, info.version) if (part := _line(text))) or _NAMELESS
    return name if owner is None else f"{_line(owner)}: {name}"


def _line(text: str) -> str:
    return visible(" ".join(text[: 4 * _LONGEST].split()))[:_LONGEST]
