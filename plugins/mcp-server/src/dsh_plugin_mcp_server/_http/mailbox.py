"""One session of the host's that many requests share, each with answers of its own.

Ids are the mailbox's own on the inside: what a client calls its requests, its progress and its subscriptions is put
back before it reads an answer. So nobody can reach, cancel or hear a request but the one who made it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import anyio
import trio
from attrs import define, field
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from dsh_plugin_mcp_server._streams import ClosingStream, Transport
from dsh_plugin_mcp_server._wire import ReceivedMessage

#: So many messages wait for a client that does not read; then its request is given up.
_WAITING: Final = 256
Answer: TypeAlias = JSONRPCResponse | JSONRPCError
Outgoing: TypeAlias = Answer | JSONRPCNotification


@define(eq=False)
class Letter:
    """One request on its way, and what comes back for it; the last message is its answer."""

    request: JSONRPCRequest
    inner_id: int
    came: trio.MemoryReceiveChannel[Outgoing]
    deliver: trio.MemorySendChannel[Outgoing] = field(repr=False)


class Mailbox:
    """The two streams of the shared session."""

    def __init__(self) -> None:
        send, receive = trio.open_memory_channel[SessionMessage](0)
        self._send = send
        self._letters: dict[int, Letter] = {}
        self.posts = 0
        self.transport = Transport(_Inbox(receive), _Outbox(self))
        self.closed = False

    @property
    def busy(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._letters)

    @asynccontextmanager
    async def posted(self, request: JSONRPCRequest, size: int) -> AsyncIterator[Letter]:
        """Hand a request in; what is not answered when the body ends is cancelled."""
        deliver, came = trio.open_memory_channel[Outgoing](_WAITING)
        self.posts += 1
        letter = Letter(request, self.posts, came, deliver)
        self._letters[letter.inner_id] = letter
        try:
            await self._post(ReceivedMessage(_inward(request, letter.inner_id), size=size))
            yield letter
        finally:
            if self._letters.pop(letter.inner_id, None) is not None:
                with trio.CancelScope(shield=True), trio.move_on_after(1):
                    await self._post(SessionMessage(_cancellation(letter.inner_id)))
            deliver.close()
            came.close()

    def take(self, item: SessionMessage) -> None:
        """Put an outgoing message where it belongs; what belongs nowhere is dropped."""
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            letter = self._letters.pop(_as_int(message.id), None)
            if letter is not None:
                self._hand_over(letter, message.model_copy(update={"id": letter.request.id}))
        elif isinstance(message, JSONRPCNotification):
            letter = self._letters.get(_as_int(_related(item)))
            if letter is not None:
                self._hand_over(letter, _outward(message, letter))

    def close(self) -> None:
        """The session is over: nothing more comes."""
        self.closed = True
        for letter in self._letters.values():
            letter.deliver.close()
        self._letters.clear()
        self._send.close()

    async def _post(self, item: SessionMessage) -> None:
        try:
            await self._send.send(item)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise anyio.BrokenResourceError from None

    def _hand_over(self, letter: Letter, message: Outgoing) -> None:
        try:
            letter.deliver.send_nowait(message)
        except trio.WouldBlock:
            # A client that does not read; its stream ends here, and its request is cancelled.
            letter.deliver.close()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


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
    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox

    async def send(self, item: SessionMessage, /) -> None:
        await trio.lowlevel.checkpoint()
        self._mailbox.take(item)

    async def aclose(self) -> None:
        self._mailbox.close()


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


def _related(item: SessionMessage) -> Any:
    """The request that a notification is about."""
    if isinstance(item.metadata, ServerMessageMetadata) and item.metadata.related_request_id is not None:
        return item.metadata.related_request_id
    params = item.message.params if isinstance(item.message, JSONRPCNotification) else None
    return (params or {}).get("progressToken")


def _cancellation(inner_id: int) -> JSONRPCNotification:
    params = {"requestId": inner_id, "reason": "the client has gone away"}
    return JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params)


def _as_int(value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and math.isfinite(value) else -1
