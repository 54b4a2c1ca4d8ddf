"""The calls of one client session: each with an id, a signal and a way to come to rest.

Strategy: the SDK cancels a request by cancelling the task that answers it. A call is shielded from that, and told by
its signal instead, so that it goes through all its stages and ends as ``ABORTED``. What does not heed its signal within
:data:`GRACE` seconds loses the shield and is cancelled by trio.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import trio
from attrs import define, field
from dsh_hookspecs import AbortController, ToolProgress
from mcp.server.session import ServerSession
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import ElicitResult, RequestId

#: Asks the client's user; ``MCPError`` if that cannot be done.
Ask: TypeAlias = Callable[[str], Awaitable[ElicitResult]]

GRACE: Final = 5.0
_CANCELLED: Final = "the client cancelled the request"
#: So many progress reports of a call wait for the client; older ones are dropped.
_UNSENT: Final = 64


@define(eq=False)
class Call:
    """One call on its way through the pipeline."""

    call_id: str
    request_id: RequestId
    session: ServerSession
    wants_progress: bool
    #: ``None``: the client's user cannot be asked about this call.
    ask: Ask | None = None
    controller: AbortController = field(factory=AbortController)
    shield: trio.CancelScope = field(factory=lambda: trio.CancelScope(shield=True))
    rested: trio.Event = field(factory=trio.Event)
    reached: float | None = None
    #: Whether a value that is no object goes out beside the content.
    structured: bool = True
    unsent: deque[ToolProgress] = field(factory=lambda: deque(maxlen=_UNSENT))
    sending: trio.Lock = field(factory=trio.Lock)

    async def insist(self) -> None:
        """Wait for an aborted call to come to rest; past the grace period, let cancellation through."""
        with trio.move_on_after(GRACE, shield=True):
            await self.rested.wait()
        self.shield.shield = False


class Calls:
    """The calls of one session that have begun and not come to rest."""

    def __init__(self, most: int, insist: Callable[[Call], None], is_cancelled: Callable[[RequestId], bool]) -> None:
        self._prefix = f"mcp-{secrets.token_hex(6)}"
        self._minted = 0
        self._turns = trio.Semaphore(most)
        self._insist = insist
        self._is_cancelled = is_cancelled
        self._by_request: dict[RequestId, Call] = {}
        self._by_id: dict[str, Call] = {}
        self._closed: str | None = None

    def get(self, call_id: str) -> Call | None:
        """The running call of this id."""
        return self._by_id.get(call_id)

    @asynccontextmanager
    async def running(self, request_id: RequestId, session: ServerSession, **more: Any) -> AsyncIterator[Call]:
        """A new call, from the moment its turn has come until it has come to rest.

        Until its turn has come it can be cancelled; then it is shielded.
        """
        async with self._turns:
            await trio.lowlevel.checkpoint_if_cancelled()
            call = self._open(request_id, session, **more)
            try:
                with call.shield:
                    yield call
            finally:
                self._close(call)

    def let_go(self, call: Call) -> None:
        """The call goes on while no request of the client's waits for it."""
        call.wants_progress = False
        self._forget_request(call)

    def take_up(self, call: Call, request_id: RequestId, session: ServerSession, wants_progress: bool) -> None:
        """Another request of the client's waits for the call from now on."""
        if self._by_id.get(call.call_id) is not call:
            return
        call.request_id, call.session, call.wants_progress = request_id, session, wants_progress
        self._by_request[coerce_request_id(request_id)] = call
        if self._is_cancelled(request_id):
            self._abort(call, _CANCELLED)

    def cancel(self, request_id: RequestId) -> None:
        """The client no longer wants an answer to this request."""
        call = self._by_request.get(coerce_request_id(request_id))
        if call is not None:
            self._abort(call, _CANCELLED)

    def abort_all(self, reason: str) -> None:
        """End every call, and every one that is still to come."""
        self._closed = reason
        for call in list(self._by_id.values()):
            self._abort(call, reason)

    def _abort(self, call: Call, reason: str) -> None:
        if call.controller.abort(reason):
            self._insist(call)

    def _open(self, request_id: RequestId, session: ServerSession, **more: Any) -> Call:
        self._minted += 1
        call = Call(f"{self._prefix}:{self._minted}", request_id, session, **more)
        self._by_request[coerce_request_id(request_id)] = self._by_id[call.call_id] = call
        if self._closed is not None:
            self._abort(call, self._closed)
        elif self._is_cancelled(request_id):
            # The client was quicker than the request's task, and the SDK has not acted on it yet.
            self._abort(call, _CANCELLED)
        return call

    def _close(self, call: Call) -> None:
        del self._by_id[call.call_id]
        self._forget_request(call)
        call.rested.set()

    def _forget_request(self, call: Call) -> None:
        # The client may have used the id of a request that it has an answer to for another one.
        key = coerce_request_id(call.request_id)
        if self._by_request.get(key) is call:
            del self._by_request[key]
