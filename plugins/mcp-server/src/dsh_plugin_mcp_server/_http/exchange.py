"""One request and what it is answered with; and the session of the host's that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import trio
from dsh_hookspecs import Context
from mcp_types import INTERNAL_ERROR, JSONRPCError, RequestId

from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._http.clients import Client
from dsh_plugin_mcp_server._http.mailbox import Answer, Letter, Letters, Outgoing
from dsh_plugin_mcp_server._http.replies import (
    PING,
    Headers,
    Receive,
    Send,
    begin_events,
    send_bytes,
    send_error,
    send_event,
)
from dsh_plugin_mcp_server._session import serve_client
from dsh_plugin_mcp_server._wire import encode

#: So often a stream says that it is still there.
_PING_EVERY: Final = 15.0
_NO_STATUS: Final[Mapping[int, int]] = {}


@asynccontextmanager
async def while_there(receive: Receive) -> AsyncIterator[None]:
    """The body, for as long as the client is there."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, receive, nursery.cancel_scope)
        yield
        nursery.cancel_scope.cancel()


async def _watch(receive: Receive, scope: trio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def reply(
    letter: Letter,
    send: Send,
    *,
    error_status: Mapping[int, int] = _NO_STATUS,
    over_status: int = 503,
    headers: Headers | None = None,
) -> None:
    """One JSON document where the answer comes first, else a stream of events that ends with the answer.

    ``over_status`` is told if the session ends before anything has come.
    """
    message: Any = await _next(letter.came)
    if message is None:
        await send_error(send, over_status, "the session is over; ask again", code=INTERNAL_ERROR)
        return
    if _is_answer(message):
        await _send_answer(message, send, error_status, headers)
        return
    await begin_events(send, headers)
    while not _is_answer(message):
        await send_event(send, PING if message is PING else _frame(message))
        message = await _next(letter.came)
        if message is None:
            message = _lost(letter.request.id)
    await send_event(send, _frame(message), last=True)


async def send_standing(came: trio.MemoryReceiveChannel[Outgoing], send: Send, headers: Headers) -> None:
    """A stream of events without an end of its own."""
    await begin_events(send, headers)
    while (message := await _next(came)) is not None:
        await send_event(send, PING if message is PING else _frame(message))
    await send({"type": "http.response.body", "body": b""})


async def serve_letters(ctx: Context, config: Config, client: Client, letters: Letters) -> None:
    """Serve one session until its client's token is revoked, or it has not been used for a while."""
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_until_unused, client, letters, config.http.session_timeout, nursery.cancel_scope)
            await serve_client(ctx, config, letters.transport, client.scope.key, client.owner)
            nursery.cancel_scope.cancel()
    finally:
        letters.close()


async def _until_unused(client: Client, letters: Letters, seconds: float, scope: trio.CancelScope) -> None:
    used = True
    while used:
        before = letters.posts
        with trio.move_on_after(seconds):
            await client.ended.wait()
            break
        used = letters.busy or letters.posts != before
    letters.close()
    scope.cancel()


async def _next(came: trio.MemoryReceiveChannel[Outgoing]) -> Any:
    """The next message; a ping after a while; ``None`` if there will be none."""
    with trio.move_on_after(_PING_EVERY):
        try:
            return await came.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            return None
    return PING


def _is_answer(message: Any) -> bool:
    return message is not PING and not hasattr(message, "method")


async def _send_answer(message: Answer, send: Send, error_status: Mapping[int, int], headers: Headers | None) -> None:
    status = error_status.get(message.error.code, 200) if isinstance(message, JSONRPCError) else 200
    await send_bytes(send, status, _frame(message), b"application/json", headers)


def _frame(message: Outgoing) -> bytes:
    return encode(message).rstrip()


def _lost(request_id: RequestId) -> JSONRPCError:
    error = {"code": INTERNAL_ERROR, "message": "the stream was not read in time, or the session is over"}
    return JSONRPCError.model_validate({"jsonrpc": "2.0", "id": request_id, "error": error})
