"""The client's messages on their way to the SDK.

What the SDK leaves open is settled here: rubbish gets an answer, a request id is used once at a time, no more is read
than is worked on, and a cancellation or the client's leaving reaches the calls before the SDK acts on it. Reading never
waits for a write: a client that takes no answers can still cancel, and leave.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Self

import anyio
import trio
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCNotification, JSONRPCRequest, RequestId

from dsh_plugin_mcp_server._backlog import Backlog
from dsh_plugin_mcp_server._outlet import Outlet
from dsh_plugin_mcp_server._streams import ClosingStream, Transport
from dsh_plugin_mcp_server._wire import ReceivedMessage, WireError

#: While nothing is read, the only sign of a client that has left is its end of the pipe.
_LOOK: Final = 0.25
#: What a client has asked before it closed its end has so many seconds to be answered; it may still be reading.
_LAST_ANSWERS: Final = 1.0
_ENDED: Final = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)


class Intake(ClosingStream):
    """The stream that the SDK's server reads."""

    def __init__(
        self,
        transport: Transport,
        backlog: Backlog,
        outlet: Outlet,
        on_cancel: Callable[[RequestId], None],
        on_end: Callable[[], None],
        start: Callable[..., None],
    ) -> None:
        self._transport = transport
        self._backlog = backlog
        self._outlet = outlet
        self._on_cancel = on_cancel
        self._on_end = on_end
        self._start = start

    async def receive(self) -> SessionMessage | Exception:
        """The next message that the SDK is to see."""
        while True:
            try:
                await self._wait_for_room()
                item = await self._transport.read.receive()
            except _ENDED:
                await self._wait_for_last_answers()
                self._on_end()
                raise anyio.EndOfStream from None
            if isinstance(item, Exception):
                self._answer_rubbish(item)
            elif (admitted := self._admit(item)) is not None:
                return admitted

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        await self._transport.read.aclose()

    async def _wait_for_room(self) -> None:
        while self._backlog.full:
            with trio.move_on_after(_LOOK):
                await self._backlog.settled()
            if self._backlog.full and self._transport.hung_up():
                raise anyio.EndOfStream

    async def _wait_for_last_answers(self) -> None:
        """``printf … | dsh-run mcp`` is a client too: it asks, closes its end, and reads."""
        with trio.move_on_after(_LAST_ANSWERS):
            while not self._backlog.empty:
                await self._backlog.settled()

    def _answer_rubbish(self, fault: Exception) -> None:
        if isinstance(fault, WireError):
            self._refuse(fault.request_id, fault.code, fault.message)
        else:
            self._refuse(None, PARSE_ERROR, "Parse error: the message could not be read")

    def _admit(self, item: SessionMessage) -> SessionMessage | None:
        """The message as the SDK is to see it, if it is to."""
        message = item.message
        if isinstance(message, JSONRPCRequest):
            return self._admit_request(item, message)
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            request_id = cancelled_request_id_from_params(message.params)
            if request_id is not None:
                self._backlog.cancel(request_id)
                self._on_cancel(request_id)
        return item

    def _admit_request(self, item: SessionMessage, request: JSONRPCRequest) -> SessionMessage | None:
        size = item.size if isinstance(item, ReceivedMessage) else 0
        if not self._backlog.add(request.id, size):
            self._refuse(request.id, INVALID_REQUEST, "Invalid request: an unanswered request has this id")
            return None
        return SessionMessage(request, ServerMessageMetadata(on_request_unanswered=partial(self._settle, request.id)))

    def _refuse(self, request_id: RequestId | None, code: int, message: str) -> None:
        self._backlog.add_refusal()
        self._start(self._send_refusal, request_id, code, message)

    async def _send_refusal(self, request_id: RequestId | None, code: int, message: str) -> None:
        try:
            # The outlet itself sees to a client that takes no more.
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self._outlet.refuse(request_id, code, message)
        finally:
            self._backlog.settle_refusal()

    async def _settle(self, request_id: RequestId) -> None:
        self._backlog.settle(request_id)
        self._transport.unanswered(request_id)
