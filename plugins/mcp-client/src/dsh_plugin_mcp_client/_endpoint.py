"""A server behind an endpoint of streamable HTTP, spoken to by the SDK over a transport that bounds what comes back.

The SDK bounds the events of a stream, not a document: that is done here, and nothing comes compressed, since a small
response could be a large one then.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

from dsh_plugin_mcp_client._config import Config

_SESSION: Final = "mcp-session-id"


class Endpoint(httpx2.AsyncBaseTransport):
    """The way to one endpoint. ``down`` tells whether it was not there when it was last tried, or knows the session no
    more; ``doubted``, whether it may have said the latter: many servers say 400 where the protocol has 404.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport, max_message_bytes: int) -> None:
        self._inner = inner
        self._most = max_message_bytes
        self._broken = False
        self._over = False
        self.doubted = False

    @property
    def down(self) -> bool:
        return self._broken or self._over

    def broke(self) -> None:
        """The endpoint has not kept to HTTP, or is not there."""
        self._broken = True

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the response's document is bounded, its stream of events is not."""
        request.headers["accept-encoding"] = "identity"
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.TransportError, OSError):
            self.broke()
            raise
        self._broken = False
        kind = response.headers.get("content-type", "").lower()
        if response.status_code == 404 and _SESSION in request.headers:
            self._over = True
        if response.status_code == 400 and _SESSION in request.headers:
            self.doubted = True
        if "content-encoding" in response.headers:
            await response.aclose()
            return _refusal(request, 502, "the response is encoded, which was not asked for")
        if request.method == "POST" and response.status_code >= 400 and not kind.startswith("application/json"):
            await response.aclose()
            return _refusal(request, response.status_code, f"it answered with status {response.status_code}")
        if isinstance(response.stream, httpx2.AsyncByteStream):
            most = math.inf if kind.startswith("text/event-stream") else self._most
            response.stream = _Bounded(response.stream, most, self.broke)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


def _refusal(request: httpx2.Request, status: int, message: str) -> httpx2.Response:
    """A response that says in the SDK's language what a response said in none."""
    code = METHOD_NOT_FOUND if status == 404 else INTERNAL_ERROR
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=body, request=request)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, most: float, broke: Callable[[], None]) -> None:
        self._inner = inner
        self._most = most
        self._broke = broke

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for part in self._inner:
                size += len(part)
                if size > self._most:
                    raise httpx2.StreamError(f"the response has more than {self._most:,} bytes")
                yield part
        except (httpx2.NetworkError, httpx2.ProtocolError):
            self._broke()
            raise

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def endpoint(config: Config) -> AsyncIterator[tuple[Any, Any, Endpoint]]:
    """The streams of an endpoint, and the way to it."""
    assert config.url is not None
    limits = httpx2.Timeout(config.connect_timeout, read=config.call_timeout)
    way = Endpoint(httpx2.AsyncHTTPTransport(trust_env=False), config.max_message_bytes)
    async with (
        httpx2.AsyncClient(headers=config.headers, timeout=limits, trust_env=False, transport=way) as client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=config.max_message_bytes) as streams,
    ):
        yield streams[0], streams[1], way
