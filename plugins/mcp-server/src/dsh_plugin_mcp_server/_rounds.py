"""How a call is answered in several rounds.

Since 2026-07-28 a server sends no requests. It asks the client's user by answering the request with the question, and
the client makes the request again, with what the user said. The call itself runs on meanwhile, in a task of the
session: it is one call, with one result, however many requests that takes.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import trio
from attrs import define, field
from dsh_hookspecs import ToolExecutionResult
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolRequestParams, RequestId

from dsh_plugin_mcp_server._calls import Call, Calls
from dsh_plugin_mcp_server._news import send_progress, wants_progress
from dsh_plugin_mcp_server._results import ResultForm
from dsh_plugin_mcp_server._talks import Talk, Talks

_log = logging.getLogger(__name__)

RequestContext: TypeAlias = ServerRequestContext[Any, Any]


@define
class Rounds:
    """The calls of one session that may ask its client's user between two requests."""

    calls: Calls
    form: ResultForm
    execute: Callable[[Call, CallToolRequestParams], Awaitable[ToolExecutionResult]]
    start: Callable[..., None]
    _talks: Talks = field(factory=Talks)

    async def begin(self, ctx: RequestContext, request_id: RequestId, params: CallToolRequestParams) -> dict[str, Any]:
        """Make a new call; answer with its result or with a question."""
        talk = self._talks.begin(params)
        self.start(self._run, talk, ctx, request_id, params)
        return await self._answer(talk)

    async def go_on(self, ctx: RequestContext, request_id: RequestId, params: CallToolRequestParams) -> dict[str, Any]:
        """Go on with a call that has asked; answer with its result or with the next question."""
        talk = self._talks.find(params)
        if talk.call is not None:
            self.calls.take_up(talk.call, request_id, ctx.session, wants_progress(ctx))
        talk.hear(params.input_responses or {})
        return await self._answer(talk)

    async def _run(self, talk: Talk, ctx: RequestContext, request_id: RequestId, params: CallToolRequestParams) -> None:
        """The call's own task."""
        more = {"wants_progress": wants_progress(ctx), "ask": talk.ask}
        try:
            with talk.scope:
                async with self.calls.running(request_id, ctx.session, **more) as talk.call:
                    talk.result = await self.execute(talk.call, params)
        except Exception:
            _log.exception("a call of an MCP client failed")
        finally:
            talk.rest()
            self._talks.drop_unclaimed()

    async def _answer(self, talk: Talk) -> dict[str, Any]:
        """What one request is answered with. Cancelled, it takes the call with it and waits until that has rested."""
        talk.attended = True
        try:
            await self._until_answer(talk)
        except trio.Cancelled:
            talk.scope.cancel()
            with trio.CancelScope(shield=True):
                await talk.until_rest()
            self._talks.end(talk)
            raise
        finally:
            talk.attended = False
        if talk.rested:
            self._talks.end(talk)
            structured = talk.call is None or talk.call.structured
            return self.form.of(_result_of(talk), modern=structured)
        assert talk.call is not None, "it has asked"
        self.calls.let_go(talk.call)
        return talk.open_questions()

    async def _until_answer(self, talk: Talk) -> None:
        while True:
            await talk.until_news()
            if talk.call is not None and talk.call.wants_progress:
                await send_progress(talk.call)
            if talk.rested or talk.asks:
                return


def _result_of(talk: Talk) -> ToolExecutionResult:
    if talk.result is None:
        raise MCPError(INTERNAL_ERROR, "Internal error: the call has ended without a result; the host's log says why")
    return talk.result
