"""One client, from its first message until it has left and its last call has come to rest."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any, Final

import trio
from dsh_hookspecs import Context, Scope, ToolsService
from mcp.server import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification

from dsh_plugin_mcp_server._backlog import Backlog
from dsh_plugin_mcp_server._calls import Call, Calls
from dsh_plugin_mcp_server._channel import ElicitationChannel
from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._intake import Intake
from dsh_plugin_mcp_server._limits import Limits
from dsh_plugin_mcp_server._methods import Methods
from dsh_plugin_mcp_server._news import News
from dsh_plugin_mcp_server._outlet import Outlet
from dsh_plugin_mcp_server._presentation import Declarations, present
from dsh_plugin_mcp_server._record import Record
from dsh_plugin_mcp_server._results import ResultForm
from dsh_plugin_mcp_server._streams import Transport
from dsh_plugin_mcp_server._tools import ToolList
from dsh_runtime import ScopeKey

DISTRIBUTION: Final = "dsh-plugin-mcp-server"
#: A client has so many streams of changes open at once, at most.
_LISTENERS: Final = 16
#: What is still to be written when the session ends has so many seconds, less than the SDK allows it.
_LAST_WORDS: Final = 0.5
#: The unanswered requests of a client hold so many of its longest messages.
_LONG_MESSAGES: Final = 4


async def serve_client(
    ctx: Context, config: Config, transport: Transport, parent: object | None = None, owner: str | None = None
) -> None:
    """Serve one client on behalf of a scope made for it, below ``parent``; return when it has left.

    ``owner`` is the name of the client's token, where it needs one.
    """
    # An audit knows agents by the text of their keys: it says whose token it was.
    scope = ctx.scope(ScopeKey("mcp client" if owner is None else f"mcp client {owner!r}"), parent=parent)
    record = Record(ctx, scope.key, owner)
    try:
        if parent is None:
            present(scope.ctx, config.presentation)
        await _Session(ctx, scope, config, transport, record).run()
    finally:
        await record.end()
        # Whoever ends the plugin may have ended the scope already; twice is the same as once.
        with trio.CancelScope(shield=True):
            await scope.dispose()


class _Session:
    """The parts that serve one client, wired up."""

    def __init__(self, ctx: Context, scope: Scope, config: Config, transport: Transport, record: Record) -> None:
        self._transport = transport
        backlog = Backlog(config.max_pending_requests, _LONG_MESSAGES * config.max_message_bytes)
        self._calls = Calls(config.max_concurrent_calls, self._insist, backlog.is_cancelled)
        self._news = News(ctx, self._calls, self._send_change)
        self._bus = InMemorySubscriptionBus()
        self._server = _make_server(config, self._bus)
        self._methods = _make_methods(ctx, scope.key, self._calls, record, self._start, config)
        self._methods.install(self._server)
        self._outlet = Outlet(transport, backlog, self._hang_up)
        self._intake = Intake(transport, backlog, self._outlet, self._calls.cancel, self._leave, self._start)
        self._serving = trio.CancelScope()
        self._left = trio.Event()
        self._served = trio.Event()
        self._nursery: trio.Nursery
        scope.ctx.on("tools/progress", self._news.progressed)
        scope.ctx.on("approval/request", ElicitationChannel(ctx, self._calls).approve)
        # A change of the tools is dispatched for no scope, so a scope's own listener would not hear it.
        self._stop_listening = ctx.on("tools/change", self._news.tools_changed)

    async def run(self) -> None:
        """Serve until the client leaves or the session is cancelled."""
        try:
            await self._serve()
        finally:
            self._stop_listening()

    async def _serve(self) -> None:
        options = self._server.create_initialization_options(NotificationOptions(tools_changed=True))
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._news.run)
            self._nursery.start_soon(self._see_off)
            try:
                with self._serving:
                    await self._server.run(self._intake, self._outlet, options)
            finally:
                self._served.set()
                self._nursery.cancel_scope.cancel()

    async def _see_off(self) -> None:
        """When the client leaves or the session is cancelled: abort the calls, and let no write hold up the end."""
        try:
            await self._left.wait()
        finally:
            self._calls.abort_all("the MCP session is over")
            with trio.move_on_after(_LAST_WORDS, shield=True):
                await self._served.wait()
            self._transport.give_up()

    def _leave(self) -> None:
        self._calls.abort_all("the MCP client has left")
        self._outlet.close()
        self._left.set()

    def _hang_up(self) -> None:
        """The client takes no more answers."""
        self._leave()
        self._serving.cancel()

    def _insist(self, call: Call) -> None:
        self._start(call.insist)

    def _start(self, fn: Callable[..., Awaitable[None]], *args: Any) -> None:
        self._nursery.start_soon(fn, *args)

    async def _send_change(self) -> None:
        """Tell the client that the list of tools is another one, in the way of its protocol's era."""
        await self._bus.publish(ToolsListChanged())
        if self._methods.initialized:
            await self._outlet.send(
                SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed"))
            )


def _make_server(config: Config, bus: InMemorySubscriptionBus) -> Server[Any]:
    return Server(
        config.name,
        version=config.version if config.version is not None else version(DISTRIBUTION),
        instructions=config.instructions,
        on_subscriptions_listen=ListenHandler(bus, max_subscriptions=_LISTENERS),
    )


def _make_methods(
    ctx: Context, agent: object, calls: Calls, record: Record, start: Callable[..., None], config: Config
) -> Methods:
    limits = Limits(config.max_result_bytes, config.max_result_depth)
    tools: ToolsService = ctx.tools
    listing, form = ToolList(tools, agent, limits, Declarations(ctx, agent).text), ResultForm(limits)
    return Methods(tools, agent, calls, record, listing, form, start, elicits=config.elicitation)
