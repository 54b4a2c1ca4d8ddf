"""The two streams of a connection, with the sieve before the SDK."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import anyio
import trio
from mcp.shared.message import SessionMessage

from dsh_plugin_mcp_client._sieve import MOST_REQUESTS, Sieve


class _Stream:
    def __init__(self, inner: Any, sieve: Sieve) -> None:
        self._inner = inner
        self._sieve = sieve

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()


class SievedReader(_Stream):
    """What the server sends, as far as it concerns the host. ``overrun`` is set if it asks without end."""

    def __init__(self, inner: Any, sieve: Sieve) -> None:
        super().__init__(inner, sieve)
        self.overrun = trio.Event()
        self.why = f"it sent more than {MOST_REQUESTS} requests and has not read their answers"

    async def receive(self) -> SessionMessage | Exception:
        """The next message that passes."""
        while True:
            item: SessionMessage | Exception = await self._inner.receive()
            if isinstance(item, Exception) or self._sieve.passes(item.message):
                return item
            if self._sieve.overrun:
                self.overrun.set()
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
