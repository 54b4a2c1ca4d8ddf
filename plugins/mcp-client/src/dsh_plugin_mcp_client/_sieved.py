"""The two streams of a connection, with the sieve before the SDK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import anyio
from mcp.shared.message import SessionMessage

from dsh_plugin_mcp_client._closing import ClosingStream
from dsh_plugin_mcp_client._sieve import MOST_REQUESTS, Sieve


class _Stream(ClosingStream):
    def __init__(self, inner: Any, sieve: Sieve) -> None:
        self._inner = inner
        self._sieve = sieve

    async def aclose(self) -> None:
        await self._inner.aclose()


class SievedReader(_Stream):
    """What the server sends, as far as it concerns the host. ``on_overrun`` hears why it ends before its time."""

    on_overrun: Callable[[str], None]

    async def receive(self) -> SessionMessage | Exception:
        """The next message that passes."""
        while True:
            item: SessionMessage | Exception = await self._inner.receive()
            if isinstance(item, Exception) or self._sieve.passes(item.message):
                return item
            if self._sieve.overrun:
                self.on_overrun(f"it sent more than {MOST_REQUESTS} requests and has not read their answers")
                raise anyio.EndOfStream

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class SievedWriter(_Stream):
    """What goes to the server."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send one message."""
        await self._inner.send(item)
        self._sieve.written(item.message)
