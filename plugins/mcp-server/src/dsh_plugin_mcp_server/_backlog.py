"""How much of what a client sent is unanswered, and whether more may be read."""

from __future__ import annotations

import trio
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import RequestId


class Backlog:
    """The unanswered requests, by their ids, with the bytes that they took on the wire; and the unsent refusals."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._sizes: dict[RequestId, int] = {}
        self._cancelled: set[RequestId] = set()
        self._bytes = 0
        self._refusals = 0
        self._settled = trio.Event()

    def add(self, request_id: RequestId, size: int) -> bool:
        """Note a request; false, and nothing noted, if one of this id is unanswered."""
        key = coerce_request_id(request_id)
        if key in self._sizes:
            return False
        self._sizes[key] = size
        self._bytes += size
        return True

    def cancel(self, request_id: RequestId) -> None:
        """The client no longer wants an answer to the request, if there is one of this id."""
        key = coerce_request_id(request_id)
        if key in self._sizes:
            self._cancelled.add(key)

    def is_cancelled(self, request_id: RequestId) -> bool:
        """Whether the request has been cancelled and not been settled yet."""
        return coerce_request_id(request_id) in self._cancelled

    def settle(self, request_id: RequestId) -> None:
        """The request has been answered, or never will be."""
        key = coerce_request_id(request_id)
        self._cancelled.discard(key)
        self._bytes -= self._sizes.pop(key, 0)
        self._settled.set()

    def add_refusal(self) -> None:
        """Note an answer to something that is not among the requests."""
        self._refusals += 1

    def settle_refusal(self) -> None:
        """Such an answer has been sent, or never will be."""
        self._refusals -= 1
        self._settled.set()

    @property
    def full(self) -> bool:
        """Whether nothing more should be read."""
        return len(self._sizes) + self._refusals >= self._most or self._bytes >= self._most_bytes

    @property
    def empty(self) -> bool:
        """Whether everything has been settled."""
        return not self._sizes and not self._refusals

    async def settled(self) -> None:
        """Wait until one more request or refusal has been settled."""
        self._settled = trio.Event()
        await self._settled.wait()
