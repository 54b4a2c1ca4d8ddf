"""A session with a handshake: its requests under the ids that its client gives them, and a stream for what concerns
none of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import trio
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from dsh_plugin_mcp_server._http.mailbox import WAITING, Letter, Letters, Outgoing, hand_over, related_to
from dsh_plugin_mcp_server._wire import ReceivedMessage

#: What the SDK, too, answers to a request that was cancelled, where the wire wants an answer.
_CANCELLED: Final = -32800


class InUseError(Exception):
    """An unanswered request has this id, or a stream is open already."""


class Desk(Letters):
    """The streams of one client's session."""

    def __init__(self) -> None:
        super().__init__()
        self._standing: trio.MemorySendChannel[Outgoing] | None = None

    @property
    def busy(self) -> bool:
        """Whether the client waits for something."""
        return super().busy or self._standing is not None

    @asynccontextmanager
    async def posted(self, message: ReceivedMessage, request: JSONRPCRequest) -> AsyncIterator[Letter]:
        """Hand a request in; a client that goes away does not cancel it, but its answer goes nowhere.

        Raises :class:`InUseError`.
        """
        key = coerce_request_id(request.id)
        if key in self._letters:
            raise InUseError
        letter = self._open(request, key)
        try:
            await self.post(message)
            yield letter
        finally:
            if self._letters.get(key) is letter:
                del self._letters[key]
            letter.close()

    @contextmanager
    def standing(self) -> Iterator[trio.MemoryReceiveChannel[Outgoing]]:
        """What concerns no request, while the body runs. Raises :class:`InUseError`: there is one such stream."""
        if self._standing is not None:
            raise InUseError
        deliver, came = trio.open_memory_channel[Outgoing](WAITING)
        self._standing = deliver
        try:
            yield came
        finally:
            self._standing = None
            deliver.close()
            came.close()

    def take(self, item: SessionMessage) -> None:
        """Put an outgoing message where it belongs; what belongs nowhere is dropped."""
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if message.id is not None:
                self._answer(coerce_request_id(message.id), message)
            return
        related = related_to(item)
        letter = self._letters.get(coerce_request_id(related)) if related is not None else None
        if letter is not None:
            letter.hand_over(message)
        elif self._standing is not None:
            hand_over(self._standing, message)

    def unanswered(self, request_id: RequestId) -> None:
        """This era's wire ends with an answer, also for what was cancelled."""
        error = ErrorData(code=_CANCELLED, message="Request cancelled")
        self._answer(coerce_request_id(request_id), JSONRPCError(jsonrpc="2.0", id=request_id, error=error))

    def close(self) -> None:
        """The session is over: nothing more comes."""
        super().close()
        if self._standing is not None:
            self._standing.close()
