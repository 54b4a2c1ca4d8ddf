"""Requests since protocol 2026-07-28: each stands alone, and is answered on its own response.

The requests of one token go through one session of the host's, which ends when it has not been used for a while.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
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
from mcp_types import HEADER_MISMATCH, INTERNAL_ERROR, PARSE_ERROR, JSONRPCRequest
from pydantic import ValidationError

from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._http.clients import Client
from dsh_plugin_mcp_server._http.exchange import reply, serve_letters, while_there
from dsh_plugin_mcp_server._http.mailbox import Mailbox
from dsh_plugin_mcp_server._http.replies import Receive, Send, send_empty, send_error

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
            # Going away is how a client cancels.
            async with mailbox.posted(request, size) as letter, while_there(receive):
                await reply(letter, send, error_status=ERROR_CODE_HTTP_STATUS)
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
            await serve_letters(self._ctx, self._config, client, mailbox)
        finally:
            if self._mailboxes.get(client) is mailbox:
                del self._mailboxes[client]


async def _take_notification(headers: Mapping[str, str], send: Send) -> None:
    """A notification is acknowledged; this protocol has none for a server to act on."""
    rejection = unsupported_protocol_version_rejection(headers.get(_PROTOCOL, ""))
    if rejection is not None:
        await _reject(send, rejection, None)
        return
    await send_empty(send, 202)


async def _reject(send: Send, rejection: InboundLadderRejection, request_id: Any) -> None:
    status = ERROR_CODE_HTTP_STATUS.get(rejection.code, 400)
    await send_error(send, status, rejection.message, code=rejection.code, request_id=request_id, data=rejection.data)
