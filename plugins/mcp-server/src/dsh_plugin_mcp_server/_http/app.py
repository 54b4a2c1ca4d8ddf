"""What a request has to get past before it is served: number, host, origin, token, body.

Then, by its protocol, the part that serves it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field
from dsh_hookspecs import HarnessError
from mcp_types import INTERNAL_ERROR
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._http.body import BodyRefusedError, DisconnectedError, read_body
from dsh_plugin_mcp_server._http.clients import ANYBODY, Client, Clients
from dsh_plugin_mcp_server._http.modern import Modern
from dsh_plugin_mcp_server._http.origins import host_allowed, negotiate, origin_allowed
from dsh_plugin_mcp_server._http.refusals import Refusals
from dsh_plugin_mcp_server._http.replies import Receive, Send, header, send_bytes, send_error
from dsh_plugin_mcp_server._http.sessions import Sessions
from dsh_plugin_mcp_server._http.tokens import TokenFile

_log = logging.getLogger(__name__)
_CHALLENGE: Final = [(b"www-authenticate", b'Bearer realm="dsh-runtime"')]
_METHODS: Final = ("GET", "POST", "DELETE")
_VERSION: Final = b"mcp-protocol-version"


class _RefusedError(Exception):
    """A request is not served."""

    def __init__(self, status: int, message: str, *, challenge: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.headers = _CHALLENGE if challenge else []


@define
class App:
    """The ASGI application. ``stopping`` is set when no more requests are to be taken."""

    _config: Config
    _tokens: TokenFile | None
    _clients: Clients
    _sessions: Sessions
    _modern: Modern
    stopping: bool = field(default=False, init=False)
    _refusals: Refusals = field(factory=Refusals, init=False)
    _serving: int = field(default=0, init=False)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/healthz":
            await send_bytes(send, 200, b"ok\n", b"text/plain")
        elif path == "/readyz":
            await self._say_ready(send)
        elif path != self._config.http.path:
            await send_error(self._refusals.noting(scope, send), 404, "Not found")
        else:
            await self._mcp(scope, receive, self._refusals.noting(scope, send))

    async def _say_ready(self, send: Send) -> None:
        problem = self._problem()
        text = b"ready\n" if problem is None else f"not ready: {problem}\n".encode()
        await send_bytes(send, 200 if problem is None else 503, text, b"text/plain")

    def _problem(self) -> str | None:
        """Why nobody would be served now; details are for the log."""
        if self.stopping:
            return "stopping"
        try:
            if self._tokens is not None:
                self._tokens.read()
        except HarnessError as error:
            _log.error("%s", error)
            return "the tokens cannot be read"
        return None

    async def _mcp(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        try:
            client = self._admit(scope)
        except _RefusedError as refused:
            await send_error(send, refused.status, str(refused), headers=refused.headers)
            return
        self._serving += 1
        try:
            await self._serve(client, scope, await self._body(scope, receive), receive, send)
        except BodyRefusedError as refused:
            await send_error(send, refused.status, str(refused), headers=[(b"connection", b"close")])
        except DisconnectedError:
            return
        except Exception:
            _log.exception("answering a request of an MCP client failed")
            await send_error(send, 500, "Internal error: the host's log says why", code=INTERNAL_ERROR)
        finally:
            self._serving -= 1

    async def _body(self, scope: Mapping[str, Any], receive: Receive) -> bytes:
        if scope["method"] != "POST":
            return b""
        return await read_body(scope, receive, self._config.max_message_bytes, self._config.http.body_timeout)

    async def _serve(self, client: Client, scope: Mapping[str, Any], body: bytes, receive: Receive, send: Send) -> None:
        if scope["method"] not in _METHODS:
            await send_error(send, 405, "Method not allowed", headers=[(b"allow", b"GET, POST, DELETE")])
            return
        refusal = negotiate(scope)
        if refusal is not None:
            await send_error(send, *refusal)
            return
        version = header(scope, _VERSION)
        handshake = version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
        part = self._sessions if handshake else self._modern
        await part.answer(client, scope, body, receive, send)

    def _admit(self, scope: Mapping[str, Any]) -> Client:
        """Whose request this is; :class:`_RefusedError` if it is not to be served."""
        limits = self._config.http
        if self.stopping:
            raise _RefusedError(503, "the server is stopping")
        if self._serving >= limits.max_requests:
            raise _RefusedError(503, "too many requests at once; try again later")
        if not host_allowed(header(scope, b"host"), limits.allowed_hosts):
            raise _RefusedError(421, "the Host header names no server that is known here (allowed_hosts)")
        if any(key.lower() == b"origin" for key, _ in scope["headers"]) and not origin_allowed(
            header(scope, b"origin") or "null", limits.allowed_origins
        ):
            raise _RefusedError(403, "the Origin may not call this server (allowed_origins)")
        return self._identify(scope)

    def _identify(self, scope: Mapping[str, Any]) -> Client:
        if self._tokens is None:
            return self._clients.of(ANYBODY)
        value = header(scope, b"authorization") or ""
        scheme, _, secret = value.partition(" ")
        if scheme.lower() != "bearer":
            raise _RefusedError(401, "a bearer token is needed", challenge=True)
        try:
            token = self._tokens.find(secret.strip())
            self._clients.end_revoked(self._tokens.holds)
            if token is None:
                raise _RefusedError(401, "the token is not valid", challenge=True)
            return self._clients.of(token)
        except HarnessError as error:
            _log.error("nobody is let in: %s", error)
            raise _RefusedError(503, "the server cannot tell who may come in; its log says why") from error


async def _live(receive: Receive, send: Send) -> None:
    """The server's own start and end; the application has nothing to do for them."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
