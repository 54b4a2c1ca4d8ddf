"""Requests of the protocols with a handshake: each belongs to a session, and a session to the token that opened it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
import trio
from attrs import define, field
from dsh_hookspecs import Context
from mcp_types import INTERNAL_ERROR, JSONRPCRequest

from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._http.clients import Client
from dsh_plugin_mcp_server._http.desk import Desk, InUseError
from dsh_plugin_mcp_server._http.exchange import reply, send_standing, serve_letters, while_there
from dsh_plugin_mcp_server._http.replies import Headers, Receive, Send, header, send_empty, send_error
from dsh_plugin_mcp_server._wire import ReceivedMessage, WireError, decode

SESSION_HEADER: Final = b"mcp-session-id"
_GONE: Final = "Session not found"


@define(eq=False)
class _Session:
    """One session while it is open."""

    id: str
    client: Client
    desk: Desk = field(factory=Desk)
    over: trio.CancelScope = field(factory=trio.CancelScope)

    @property
    def headers(self) -> Headers:
        """What its responses say of it."""
        return [(SESSION_HEADER, self.id.encode())]


@define
class Sessions:
    """The open sessions."""

    _ctx: Context
    _config: Config
    _start: Callable[..., None]
    _open: dict[str, _Session] = field(factory=dict, init=False)

    def __len__(self) -> int:
        return len(self._open)

    async def answer(self, client: Client, scope: Mapping[str, Any], body: bytes, receive: Receive, send: Send) -> None:
        """Answer one request of a session, or one that opens a session."""
        session_id = header(scope, SESSION_HEADER)
        if session_id is None:
            await self._answer_first(client, scope, body, receive, send)
            return
        session = self._open.get(session_id)
        if session is None or session.client is not client:
            # Somebody else's session is one that is not there.
            await send_error(send, 404, _GONE)
        elif scope["method"] == "POST":
            await self._answer_message(session, decode(body), receive, send)
        elif scope["method"] == "GET":
            await _answer_standing(session, receive, send)
        else:
            self._discard(session)
            await send_empty(send, 204)

    async def _answer_message(
        self, session: _Session, message: ReceivedMessage | WireError, receive: Receive, send: Send
    ) -> None:
        try:
            if isinstance(message, WireError):
                await send_error(send, 400, message.message, code=message.code, request_id=message.request_id)
            elif isinstance(message.message, JSONRPCRequest):
                async with session.desk.posted(message, message.message) as letter, while_there(receive):
                    await reply(letter, send, over_status=404, headers=session.headers)
            else:
                await session.desk.post(message)
                await send_empty(send, 202)
        except InUseError:
            await send_error(send, 400, "Invalid request: an unanswered request has this id")
        except anyio.BrokenResourceError:
            await send_error(send, 404, _GONE)

    async def _answer_first(
        self, client: Client, scope: Mapping[str, Any], body: bytes, receive: Receive, send: Send
    ) -> None:
        message = decode(body) if scope["method"] == "POST" else None
        if isinstance(message, WireError):
            await send_error(send, 400, message.message, code=message.code, request_id=message.request_id)
            return
        request = message.message if message is not None else None
        if message is None or not isinstance(request, JSONRPCRequest) or request.method != "initialize":
            await send_error(send, 400, "a session begins with 'initialize'; later requests name it in Mcp-Session-Id")
            return
        limits = self._config.http
        if len(self._open) >= limits.max_sessions:
            await send_error(send, 503, "Too many open sessions", code=INTERNAL_ERROR)
        elif client.sessions >= limits.max_sessions_per_client:
            await send_error(send, 429, "Too many open sessions of this token", code=INTERNAL_ERROR)
        else:
            await self._greet(self._admit(client), message, request, receive, send)

    async def _greet(
        self, session: _Session, message: ReceivedMessage, request: JSONRPCRequest, receive: Receive, send: Send
    ) -> None:
        """Only a handshake that was answered opens a session; anything else leaves nothing."""
        served = False
        self._start(self._serve, session)
        try:
            async with session.desk.posted(message, request) as letter:
                async with while_there(receive):
                    await reply(letter, send, headers=session.headers)
                served = letter.served
        except anyio.BrokenResourceError:
            await send_error(send, 503, "the server is stopping", code=INTERNAL_ERROR)
        finally:
            if not served:
                self._discard(session)

    def _admit(self, client: Client) -> _Session:
        session = _Session(secrets.token_hex(16), client)
        self._open[session.id] = session
        client.sessions += 1
        return session

    async def _serve(self, session: _Session) -> None:
        """Serve one session until it is ended, unused for too long, or its token is revoked."""
        try:
            with session.over:
                await serve_letters(self._ctx, self._config, session.client, session.desk)
        finally:
            self._discard(session)

    def _discard(self, session: _Session) -> None:
        if self._open.pop(session.id, None) is not None:
            session.client.sessions -= 1
        session.over.cancel()


async def _answer_standing(session: _Session, receive: Receive, send: Send) -> None:
    try:
        with session.desk.standing() as came:
            async with while_there(receive):
                await send_standing(came, send, session.headers)
    except InUseError:
        await send_error(send, 409, "Conflict: a session has one stream")
