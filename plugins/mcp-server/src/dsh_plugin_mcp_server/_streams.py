"""The two streams of a client, and what else a session may ask of its transport."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from attrs import frozen
from mcp.shared.message import SessionMessage
from mcp_types import RequestId


class ReadStream(Protocol):
    """Messages from the client. An exception among them stands for something that was no message."""

    async def receive(self) -> SessionMessage | Exception: ...
    async def aclose(self) -> None: ...


class WriteStream(Protocol):
    """Messages to the client."""

    async def send(self, item: SessionMessage, /) -> None: ...
    async def aclose(self) -> None: ...


def _never() -> bool:
    return False


def _nothing() -> None:
    return None


def _no_matter(request_id: RequestId) -> None:
    return None


@frozen
class Transport:
    """``hung_up`` tells whether the client has left while nothing is read; ``give_up`` ends a write that is stuck;
    ``unanswered`` hears of requests that will not be answered.
    """

    read: ReadStream
    write: WriteStream
    hung_up: Callable[[], bool] = _never
    give_up: Callable[[], None] = _nothing
    unanswered: Callable[[RequestId], None] = _no_matter


class ClosingStream:
    """The part of a stream that the SDK needs beside its one verb."""

    async def aclose(self) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        await self.aclose()
