"""A server behind an endpoint of streamable HTTP, spoken to by the SDK over a transport that bounds what comes back.

The SDK bounds the events of a stream, not a document: that is done here, and nothing comes compressed, since a small
response could be a large one then.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from dsh_plugin_mcp_client._config import Config


class Endpoint(httpx2.AsyncBaseTransport):
    """The way to one endpoint. ``down`` tells whether it was not there when it was last tried."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, max_message_bytes: int) -> None:
        self._inner = inner
        self._most = max_message_bytes
        self.down = False

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; the response's document is bounded, its stream of events is not."""
        request.headers["accept-encoding"] = "identity"
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.TransportError, OSError):
            self.down = True
            raise
        self.down = False
        if "content-encoding" in response.headers:
            await response.aclose()
            raise httpx2.RemoteProtocolError("the response is encoded, which was not asked for")
        events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if not events and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream, self._most)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > self._most:
                raise httpx2.StreamError(f"the response has more than {self._most:,} bytes")
            yield part

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
