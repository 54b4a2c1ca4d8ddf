"""The SDK's messages on their way to the client."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCResponse, RequestId

from dsh_plugin_mcp_server._backlog import Backlog
from dsh_plugin_mcp_server._streams import ClosingStream, Transport


class Outlet(ClosingStream):
    """The stream that the SDK's server writes. An answer settles its request; a broken pipe ends the session."""

    def __init__(self, transport: Transport, backlog: Backlog, on_broken: Callable[[], None]) -> None:
        self._write = transport.write
        self._unanswered = transport.unanswered
        self._backlog = backlog
        self._on_broken = on_broken
        self._closed = False

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message of the SDK's; an answer that the client has said it does not want is dropped."""
        message = item.message
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            await self._send(item)
            return
        try:
            if self._backlog.is_cancelled(message.id):
                self._unanswered(message.id)
            else:
                await self._send(item)
        finally:
            self._backlog.settle(message.id)

    async def refuse(self, request_id: RequestId | None, code: int, message: str) -> None:
        """Answer what the SDK is not going to see."""
        error = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
        await self._send(SessionMessage(error))

    async def aclose(self) -> None:
        await self._write.aclose()

    def close(self) -> None:
        """Nothing more is to be said: the client has left."""
        self._closed = True

    async def _send(self, item: SessionMessage) -> None:
        if self._closed:
            raise anyio.ClosedResourceError
        try:
            await self._write.send(item)
        except anyio.BrokenResourceError:
            self._on_broken()
            raise
