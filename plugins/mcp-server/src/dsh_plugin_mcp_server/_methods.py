"""How the two methods that concern tools are answered.

The SDK shapes what a handler returns after the protocol's models, which reorders the keys of a schema and drops those
that are null. So these two methods are answered by a middleware, whose result the SDK sends as it is; the price is that
the envelope of newer protocols is filled in here. Everything else is the SDK's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from attrs import define, field
from dsh_hookspecs import ToolExecutionResult, ToolsService
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    SERVER_INFO_META_KEY,
    CallToolRequestParams,
    ElicitResult,
    InitializeRequestParams,
    PaginatedRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from dsh_plugin_mcp_server._calls import Ask, Call, Calls
from dsh_plugin_mcp_server._elicitation import FORM, can_be_asked
from dsh_plugin_mcp_server._news import send_progress, wants_progress
from dsh_plugin_mcp_server._record import Record
from dsh_plugin_mcp_server._results import ResultForm
from dsh_plugin_mcp_server._rounds import Rounds
from dsh_plugin_mcp_server._tools import ToolList
from dsh_runtime import ToolExecutionInput

_log = logging.getLogger(__name__)


@define
class Methods:
    """Answers ``tools/list`` and ``tools/call`` for one agent."""

    tools: ToolsService
    agent: object
    calls: Calls
    record: Record
    listing: ToolList
    form: ResultForm
    #: Starts a task of the session's.
    start: Callable[..., None]
    #: Whether clients are asked to ask their users.
    elicits: bool
    rounds: Rounds = field(init=False)
    #: Whether the client has shaken hands, and has said so.
    greeted: bool = field(default=False, init=False)
    initialized: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.rounds = Rounds(self.calls, self.form, self.execute, self.start)

    def install(self, server: Server[Any]) -> None:
        """Answer through this server. Its own telemetry goes: the host observes every call."""
        server.add_request_handler("tools/list", PaginatedRequestParams, self.list_tools)
        server.add_request_handler("tools/call", CallToolRequestParams, self.call_tool)
        server.middleware[:] = [_Unshaped(server, self)]

    async def list_tools(self, ctx: ServerRequestContext[Any, Any], params: PaginatedRequestParams) -> dict[str, Any]:
        """One page of the tools that the agent sees."""
        await self.record.begin(ctx.session.client_params)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        page = self.listing.page(params.cursor, modern=modern)
        return {**page, "ttlMs": 0, "cacheScope": "private"} if modern else page

    async def call_tool(self, ctx: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> dict[str, Any]:
        """One trip through the pipeline, under a call id of the session's own."""
        if ctx.request_id is None:
            raise MCPError(INVALID_REQUEST, "Invalid request: a call of a tool needs an id")
        await self.record.begin(ctx.session.client_params)
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        may_ask = self.elicits and can_be_asked(ctx.session.client_capabilities)
        if modern and params.request_state is not None:
            return await self.rounds.go_on(ctx, ctx.request_id, params)
        if modern and may_ask:
            return await self.rounds.begin(ctx, ctx.request_id, params)
        more = {"wants_progress": wants_progress(ctx), "ask": _asking_by_request(ctx) if may_ask else None}
        async with self.calls.running(ctx.request_id, ctx.session, **more) as call:
            result = await self.execute(call, params)
        if call.wants_progress:
            await send_progress(call)
        return self.form.of(result, modern=modern and call.structured)

    async def execute(self, call: Call, params: CallToolRequestParams) -> ToolExecutionResult:
        """Take a call through the pipeline."""
        definition = self.tools.get(params.name, self.agent)
        call.structured = definition is None or definition.output.structured
        return await self.tools.execute(
            ToolExecutionInput(
                call_id=call.call_id,
                name=params.name,
                arguments=params.arguments if params.arguments is not None else {},
                signal=call.controller.signal,
                agent=self.agent,
            )
        )


def _asking_by_request(ctx: ServerRequestContext[Any, Any]) -> Ask:
    """Ask in the way of the protocols with a handshake: by a request of the server's own."""

    async def ask(message: str) -> ElicitResult:
        return await ctx.session.elicit_form(message, FORM, related_request_id=ctx.request_id)

    return ask


@define
class _Unshaped:
    """The middleware: its answers pass by the SDK's shaping, and no error shows the host's insides."""

    server: Server[Any]
    methods: Methods

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            return await self._answer(ctx, call_next)
        except (MCPError, ValidationError):
            raise
        except Exception:
            _log.exception("answering %r of an MCP client failed", ctx.method)
            raise MCPError(INTERNAL_ERROR, "Internal error: the host could not answer; its log says why") from None

    async def _answer(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if ctx.request_id is not None and (modern or self.methods.greeted):
            if ctx.method == "tools/call":
                call = CallToolRequestParams.model_validate(ctx.params or {}, by_name=False)
                return self._envelope(await self.methods.call_tool(ctx, call), modern)
            if ctx.method == "tools/list":
                page = PaginatedRequestParams.model_validate(ctx.params or {}, by_name=False)
                return self._envelope(await self.methods.list_tools(ctx, page), modern)
        result = await call_next(ctx)
        await self._note_handshake(ctx)
        return result

    async def _note_handshake(self, ctx: ServerRequestContext[Any, Any]) -> None:
        if ctx.method == "initialize":
            self.methods.greeted = True
            # The SDK notes them when the answer is on its way.
            await self.methods.record.begin(InitializeRequestParams.model_validate(ctx.params or {}, by_name=False))
        elif ctx.method == "notifications/initialized":
            self.methods.greeted = self.methods.initialized = True

    def _envelope(self, result: dict[str, Any], modern: bool) -> dict[str, Any]:
        if not modern:
            return result
        return {"resultType": "complete", **result, "_meta": {SERVER_INFO_META_KEY: self.server.server_info_stamp}}
