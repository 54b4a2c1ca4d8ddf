"""What the server tells a client unasked: that the list of tools changed, and how far a call has come.

Strategy: the host's events are heard by sync listeners, which leave a note; one task of the session sends what the
notes say. Changes of the list that come faster than the client reads melt into one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from attrs import evolve
from dsh_hookspecs import Context, ToolExecution, ToolProgress
from mcp.server.context import ServerRequestContext
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params

from dsh_plugin_mcp_server._calls import Call, Calls


class News:
    """The notes of one session, and the task that sends them. Secrets in messages are masked by the host's redactor."""

    def __init__(self, ctx: Context, calls: Calls, send_change: Callable[[], Awaitable[None]]) -> None:
        self._ctx = ctx
        self._calls = calls
        self._send_change = send_change
        self._changed = False
        self._progressed: dict[Call, None] = {}
        self._noted = trio.Event()
        self._home = trio.lowlevel.current_trio_token()
        self._thread = threading.get_ident()

    def tools_changed(self) -> None:
        """Listener of ``tools/change``."""
        self._changed = True
        self._wake()

    def progressed(self, exec: ToolExecution, progress: ToolProgress) -> None:
        """Listener of ``tools/progress``."""
        call = self._calls.get(exec.call_id)
        if call is not None and call.wants_progress and _goes_on(call, progress):
            call.unsent.append(self._masked(progress))
            self._progressed[call] = None
            self._wake()

    async def run(self) -> None:
        """Send what is noted, for as long as the session lasts."""
        while True:
            await self._noted.wait()
            self._noted = trio.Event()
            await self._send_noted()

    def _masked(self, progress: ToolProgress) -> ToolProgress:
        redact = self._ctx.get("redact")
        if redact is None or progress.message is None:
            return progress
        return evolve(progress, message=redact.text(progress.message))

    def _wake(self) -> None:
        """A body in a worker thread reports its progress from there."""
        if threading.get_ident() == self._thread:
            self._noted.set()
        else:
            self._home.run_sync_soon(lambda: self._noted.set())

    async def _send_noted(self) -> None:
        if self._changed:
            self._changed = False
            await self._send_change()
        while self._progressed:
            call, _ = self._progressed.popitem()
            await send_progress(call)


def wants_progress(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether a request asks to be told how far it has come."""
    return progress_token_from_params(ctx.params) is not None


async def send_progress(call: Call) -> None:
    """Send the progress of a call that the client has not been sent yet, in order."""
    async with call.sending:
        while call.unsent:
            progress = call.unsent.popleft()
            await call.session.report_progress(progress.done, progress.total, progress.message)


def _goes_on(call: Call, progress: ToolProgress) -> bool:
    """MCP's rule: each report is further on than the one before. JSON's: a number is finite."""
    if not math.isfinite(progress.done) or not (progress.total is None or math.isfinite(progress.total)):
        return False
    if call.reached is not None and progress.done <= call.reached:
        return False
    call.reached = progress.done
    return True
