"""Requests of the protocols with a handshake: each belongs to a session, and a session to the token that opened it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

import trio
from attrs import define, field
from dsh_hookspecs import Context
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp_types import INTERNAL_ERROR

from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._http.body import replaying
from dsh_plugin_mcp_server._http.clients import Client
from dsh_plugin_mcp_server._http.replies import Message, Receive, Send, header, send_error
from dsh_plugin_mcp_server._session import serve_client
from dsh_plugin_mcp_server._streams import Transport

SESSION_HEADER: Final = b"mcp-session-id"


@define(eq=False)
class _Session:
    """One session while it is open."""

    id: str
    client: Client
    http: StreamableHTTPServerTransport
    over: trio.CancelScope = field(factory=trio.CancelScope)


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
            await send_error(send, 404, "Session not found")
            return
        await session.http.handle_request(dict(scope), replaying(body, receive), send)
        if session.http.is_terminated:
            self._discard(session)

    async def _answer_first(
        self, client: Client, scope: Mapping[str, Any], body: bytes, receive: Receive, send: Send
    ) -> None:
        limits = self._config.http
        if len(self._open) >= limits.max_sessions:
            await send_error(send, 503, "Too many open sessions", code=INTERNAL_ERROR)
            return
        if client.sessions >= limits.max_sessions_per_client:
            await send_error(send, 429, "Too many open sessions of this token", code=INTERNAL_ERROR)
            return
        session = self._admit(client)
        status: list[int] = []

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])
            await send(message)

        ready = trio.Event()
        self._start(self._serve, session, ready)
        try:
            await ready.wait()
            await session.http.handle_request(dict(scope), replaying(body, receive), noting)
        finally:
            # Only a handshake opens a session; whatever else came without one leaves nothing.
            if not status or status[0] >= 400:
                self._discard(session)

    def _admit(self, client: Client) -> _Session:
        session_id = secrets.token_hex(16)
        http = StreamableHTTPServerTransport(session_id, idle_timeout=self._config.http.session_timeout)
        session = self._open[session_id] = _Session(session_id, client, http)
        client.sessions += 1
        return session

    async def _serve(self, session: _Session, ready: trio.Event) -> None:
        """Serve one session until it is ended, unused for too long, or its token is revoked."""
        try:
            with session.over:
                async with session.http.connect() as (read, write), trio.open_nursery() as nursery:
                    nursery.start_soon(_end_with, session)
                    ready.set()
                    idle = session.http.idle_scope
                    assert idle is not None
                    with idle:
                        client, transport = session.client, Transport(read, write)
                        await serve_client(self._ctx, self._config, transport, client.scope.key, client.owner)
                    nursery.cancel_scope.cancel()
        finally:
            ready.set()
            self._discard(session)
            with trio.CancelScope(shield=True):
                await session.http.terminate()

    def _discard(self, session: _Session) -> None:
        if self._open.pop(session.id, None) is not None:
            session.client.sessions -= 1
        session.over.cancel()


async def _end_with(session: _Session) -> None:
    await session.client.ended.wait()
    session.over.cancel()
