"""Requests since protocol 2026-07-28: each stands alone, and is answered on its own response.

The requests of one token go through one session of the host's, which ends when it has not been used for a while.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
import trio
from attrs import define, field
from dsh_hookspecs import Context
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, PARSE_ERROR, JSONRPCError, JSONRPCRequest
from pydantic import ValidationError

from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._http.clients import Client
from dsh_plugin_mcp_server._http.mailbox import Letter, Mailbox, Outgoing
from dsh_plugin_mcp_server._http.replies import PING, Receive, Send, begin_events, send_error, send_event, send_json
from dsh_plugin_mcp_server._session import serve_client
from dsh_plugin_mcp_server._wire import encode

#: So often a stream says that it is still there.
_PING_EVERY: Final = 15.0
_PROTOCOL: Final = "mcp-protocol-version"


@define
class Modern:
    """The shared sessions, one for each token that has asked something."""

    _ctx: Context
    _config: Config
    _start: Callable[..., None]
    _mailboxes: dict[Client, Mailbox] = field(factory=dict, init=False)

    async def answer(self, client: Client, scope: Mapping[str, Any], body: bytes, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] != "POST":
            await send_error(send, 405, "only POST is served here", headers=[(b"allow", b"POST")])
            return
        headers = [(key.decode("latin-1").lower(), value.decode("latin-1")) for key, value in scope["headers"]]
        try:
            decoded = json.loads(body)
        except (ValueError, RecursionError):
            await send_error(send, 400, "Parse error: the body is not JSON", code=PARSE_ERROR)
            return
        if isinstance(decoded, dict) and "id" not in decoded:
            await _take_notification(dict(headers), send)
            return
        try:
            request = JSONRPCRequest.model_validate(decoded, by_name=False)
        except ValidationError:
            await send_error(send, 400, "Invalid request: the body is not a single JSON-RPC request")
            return
        rejection = self._rejection(client, decoded, headers)
        if rejection is not None:
            await _reject(send, rejection, request.id)
            return
        await self._exchange(client, request, len(body), receive, send)

    def _rejection(
        self, client: Client, decoded: Mapping[str, Any], headers: list[tuple[str, str]]
    ) -> InboundLadderRejection | None:
        """What is wrong with the headers, seen beside the body."""
        twice = find_duplicated_routing_header(headers)
        if twice is not None:
            return InboundLadderRejection(code=HEADER_MISMATCH, message=f"{twice} header appears more than once")
        verdict = classify_inbound_request(decoded, headers=dict(headers))
        if isinstance(verdict, InboundLadderRejection):
            return verdict
        params = decoded.get("params", {})
        if decoded.get("method") != "tools/call" or not isinstance(params.get("name"), str):
            return None
        definition = self._ctx.tools.get(params["name"], client.scope.key)
        arguments = params.get("arguments")
        if definition is None or not isinstance(arguments, dict | None):
            return None
        return validate_mcp_param_headers(definition.parameters, arguments or {}, dict(headers))

    async def _exchange(self, client: Client, request: JSONRPCRequest, size: int, receive: Receive, send: Send) -> None:
        mailbox = self._mailbox(client)
        try:
            async with trio.open_nursery() as nursery, mailbox.posted(request, size) as letter:
                nursery.start_soon(_watch, receive, nursery.cancel_scope)
                await _reply(letter, send)
                nursery.cancel_scope.cancel()
        except anyio.BrokenResourceError:
            await send_error(send, 503, "the session is over; ask again", code=INTERNAL_ERROR, request_id=request.id)

    def _mailbox(self, client: Client) -> Mailbox:
        mailbox = self._mailboxes.get(client)
        if mailbox is None or mailbox.closed:
            mailbox = self._mailboxes[client] = Mailbox()
            self._start(self._serve, client, mailbox)
        return mailbox

    async def _serve(self, client: Client, mailbox: Mailbox) -> None:
        """Serve one token's requests until it is revoked, or has not asked anything for a while."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._until_unused, client, mailbox, nursery.cancel_scope)
                await serve_client(self._ctx, self._config, mailbox.transport, client.scope.key, client.owner)
                nursery.cancel_scope.cancel()
        finally:
            mailbox.close()
            if self._mailboxes.get(client) is mailbox:
                del self._mailboxes[client]

    async def _until_unused(self, client: Client, mailbox: Mailbox, scope: trio.CancelScope) -> None:
        seconds = self._config.http.session_timeout
        used = True
        while used:
            before = mailbox.posts
            with trio.move_on_after(seconds):
                await client.ended.wait()
                break
            used = mailbox.busy or mailbox.posts != before
        mailbox.close()
        scope.cancel()


async def _reply(letter: Letter, send: Send) -> None:
    """One JSON document where the answer comes first, else a stream of events that ends with the answer."""
    message = await _next(letter)
    if message is not PING and not _is_event(message):
        await _send_answer(message, send)
        return
    await begin_events(send)
    while True:
        if message is None:
            await send_event(send, encode(_lost(letter)), last=True)
            return
        last = message is not PING and not _is_event(message)
        await send_event(send, PING if message is PING else encode(message).rstrip(), last=last)
        if last:
            return
        message = await _next(letter)


async def _next(letter: Letter) -> Any:
    """The next message for a request; a ping after a while; ``None`` if there will be none."""
    with trio.move_on_after(_PING_EVERY):
        try:
            return await letter.came.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            return None
    return PING


def _is_event(message: Outgoing | None) -> bool:
    return message is not None and not hasattr(message, "id")


async def _send_answer(message: Any, send: Send) -> None:
    if message is None:
        await send_error(send, 503, "the session is over; ask again", code=INTERNAL_ERROR)
    elif isinstance(message, JSONRPCError):
        status = ERROR_CODE_HTTP_STATUS.get(message.error.code, 200)
        await send_json(send, status, message.model_dump(by_alias=True, exclude_unset=True, mode="json"))
    else:
        await send_json(send, 200, {"jsonrpc": "2.0", "id": message.id, "result": message.result})


def _lost(letter: Letter) -> JSONRPCError:
    error = {"code": INTERNAL_ERROR, "message": "the stream was not read in time, or the session is over"}
    return JSONRPCError.model_validate({"jsonrpc": "2.0", "id": letter.request.id, "error": error})


async def _watch(receive: Receive, scope: trio.CancelScope) -> None:
    """End the exchange when the client goes away: that is how it cancels."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _take_notification(headers: Mapping[str, str], send: Send) -> None:
    """A notification is acknowledged; this protocol has none for a server to act on."""
    rejection = unsupported_protocol_version_rejection(headers.get(_PROTOCOL, ""))
    if rejection is not None:
        await _reject(send, rejection, None)
        return
    await send({"type": "http.response.start", "status": 202, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _reject(send: Send, rejection: InboundLadderRejection, request_id: Any) -> None:
    status = ERROR_CODE_HTTP_STATUS.get(rejection.code, 400)
    await send_error(send, status, rejection.message, code=rejection.code, request_id=request_id, data=rejection.data)
