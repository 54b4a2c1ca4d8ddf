"""A session of the host's that is reached by single requests, each with answers of its own.

Ids of a :class:`Mailbox`, which many share, are its own on the inside: what a client calls its requests, its progress
and its subscriptions is put back before it reads an answer. So nobody can reach, cancel or hear a request but the one
who made it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeAlias

import anyio
import trio
from attrs import define, field
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from dsh_plugin_mcp_server._streams import ClosingStream, Transport
from dsh_plugin_mcp_server._wire import ReceivedMessage

#: So many messages wait for a client that does not read; then its request is given up.
WAITING: Final = 256
Answer: TypeAlias = JSONRPCResponse | JSONRPCError
Outgoing: TypeAlias = Answer | JSONRPCNotification | JSONRPCRequest


@define(eq=False)
class Letter:
    """One request on its way, and what comes back for it; the last message is its answer."""

    request: JSONRPCRequest
    came: trio.MemoryReceiveChannel[Outgoing]
    deliver: trio.MemorySendChannel[Outgoing] = field(repr=False)
    #: Whether the session has answered, and not with an error.
    served: bool = False

    def hand_over(self, message: Outgoing) -> None:
        """Put a message in."""
        hand_over(self.deliver, message)

    def close(self) -> None:
        """Nobody waits any more."""
        self.deliver.close()
        self.came.close()


def hand_over(channel: trio.MemorySendChannel[Outgoing], message: Outgoing) -> None:
    """Put a message in. A client that does not read loses its stream, and with it its request."""
    try:
        channel.send_nowait(message)
    except trio.WouldBlock:
        channel.close()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


class Letters:
    """The two streams of a session whose requests come one by one, each with a way back of its own."""

    def __init__(self) -> None:
        send, receive = trio.open_memory_channel[SessionMessage](0)
        self._send = send
        self._letters: dict[RequestId, Letter] = {}
        self.posts = 0
        self.transport = Transport(_Inbox(receive), _Outbox(self), unanswered=self.unanswered)
        self.closed = False

    @property
    def busy(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._letters)

    def take(self, item: SessionMessage) -> None:
        """Put an outgoing message where it belongs; what belongs nowhere is dropped."""
        raise NotImplementedError

    def unanswered(self, request_id: RequestId) -> None:
        """A request will not be answered, since its client does not want it to be."""

    async def post(self, item: SessionMessage) -> None:
        """Hand a message in; ``BrokenResourceError`` if the session is over."""
        self.posts += 1
        try:
            await self._send.send(item)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise anyio.BrokenResourceError from None

    def close(self) -> None:
        """The session is over: nothing more comes."""
        self.closed = True
        for letter in self._letters.values():
            letter.deliver.close()
        self._letters.clear()
        self._send.close()

    def _open(self, request: JSONRPCRequest, key: RequestId) -> Letter:
        deliver, came = trio.open_memory_channel[Outgoing](WAITING)
        letter = self._letters[key] = Letter(request, came, deliver)
        return letter

    def _answer(self, key: RequestId, message: Outgoing) -> None:
        """The last message for a request."""
        letter = self._letters.pop(key, None)
        if letter is not None:
            letter.served = isinstance(message, JSONRPCResponse)
            letter.hand_over(message)


class Mailbox(Letters):
    """A session that the requests of many share."""

    @asynccontextmanager
    async def posted(self, request: JSONRPCRequest, size: int) -> AsyncIterator[Letter]:
        """Hand a request in; what is not answered when the body ends is cancelled."""
        inner_id = self.posts + 1
        letter = self._open(request, inner_id)
        try:
            await self.post(ReceivedMessage(_inward(request, inner_id), size=size))
            yield letter
        finally:
            if self._letters.pop(inner_id, None) is not None:
                with trio.CancelScope(shield=True), trio.move_on_after(1), suppress(anyio.BrokenResourceError):
                    await self.post(SessionMessage(_cancellation(inner_id)))
            letter.close()

    def take(self, item: SessionMessage) -> None:
        """Put an outgoing message where it belongs; what belongs nowhere is dropped."""
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            letter = self._letters.get(_as_int(message.id))
            if letter is not None:
                self._answer(_as_int(message.id), message.model_copy(update={"id": letter.request.id}))
        elif isinstance(message, JSONRPCNotification):
            letter = self._letters.get(_about(item))
            if letter is not None:
                letter.hand_over(_outward(message, letter))


class _Inbox(ClosingStream):
    def __init__(self, channel: trio.MemoryReceiveChannel[SessionMessage]) -> None:
        self._channel = channel

    async def receive(self) -> SessionMessage:
        try:
            return await self._channel.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        await self._channel.aclose()


class _Outbox(ClosingStream):
    def __init__(self, letters: Letters) -> None:
        self._letters = letters

    async def send(self, item: SessionMessage, /) -> None:
        await trio.lowlevel.checkpoint()
        self._letters.take(item)

    async def aclose(self) -> None:
        self._letters.close()


def _inward(request: JSONRPCRequest, inner_id: int) -> JSONRPCRequest:
    params: dict[str, Any] | None = request.params
    meta = params.get("_meta") if params is not None else None
    if isinstance(meta, dict) and "progressToken" in meta:
        params = {**(params or {}), "_meta": {**meta, "progressToken": inner_id}}
    return JSONRPCRequest(jsonrpc="2.0", id=inner_id, method=request.method, params=params)


def _outward(message: JSONRPCNotification, letter: Letter) -> JSONRPCNotification:
    """A notification with the client's own names in place of the mailbox's."""
    params = dict(message.params or {})
    if "progressToken" in params:
        meta = (letter.request.params or {}).get("_meta", {})
        params["progressToken"] = meta.get("progressToken")
    meta = params.get("_meta")
    if isinstance(meta, dict) and SUBSCRIPTION_ID_META_KEY in meta:
        params["_meta"] = {**meta, SUBSCRIPTION_ID_META_KEY: letter.request.id}
    return JSONRPCNotification(jsonrpc="2.0", method=message.method, params=params)


def related_to(item: SessionMessage) -> RequestId | None:
    """The request that a message is about, if the session says so."""
    return item.metadata.related_request_id if isinstance(item.metadata, ServerMessageMetadata) else None


def _about(item: SessionMessage) -> int:
    related = related_to(item)
    params = item.message.params if isinstance(item.message, JSONRPCNotification) else None
    return _as_int(related if related is not None else (params or {}).get("progressToken"))


def _cancellation(inner_id: int) -> JSONRPCNotification:
    params = {"requestId": inner_id, "reason": "the client has gone away"}
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)


def _as_int(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and math.isfinite(value) else -1
