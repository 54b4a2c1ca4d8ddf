"""What is refused goes to the log, a bounded number of lines a second: whoever is refused may come again at once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import trio
from attrs import define, field

from dsh_plugin_mcp_server._http.replies import Message, Send
from dsh_runtime.cards import visible

_log = logging.getLogger(__name__)
#: So many are told within a second; what is more is counted.
_LINES_A_SECOND: Final = 50
#: So much of a refusal is told.
_LONGEST: Final = 300


@define
class Refusals:
    """Tells of the refusals of one server."""

    _since: float = field(default=-1.0, init=False)
    _told: int = field(default=0, init=False)
    _untold: int = field(default=0, init=False)

    def noting(self, scope: Mapping[str, Any], send: Send) -> Send:
        """A ``send`` that has every refusal told."""
        refused = 0

        async def note(message: Message) -> None:
            nonlocal refused
            if message["type"] == "http.response.start":
                refused = message["status"] if message["status"] >= 400 else 0
            elif refused:
                self._tell(scope, refused, message.get("body", b""))
                refused = 0
            await send(message)

        return note

    def _tell(self, scope: Mapping[str, Any], status: int, body: bytes) -> None:
        now = trio.current_time()
        if now - self._since >= 1:
            if self._untold:
                _log.warning("refused %d more requests", self._untold)
            self._since, self._told, self._untold = now, 0, 0
        if self._told >= _LINES_A_SECOND:
            self._untold += 1
            return
        self._told += 1
        text = visible(body.decode("utf-8", "replace")[:_LONGEST])
        _log.warning("refused a request of %s with %d: %s", _peer(scope), status, text)


def _peer(scope: Mapping[str, Any]) -> str:
    client = scope.get("client")
    return f"{client[0]}:{client[1]}" if client else "an unknown address"
