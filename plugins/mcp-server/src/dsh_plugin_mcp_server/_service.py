"""The service ``mcp_server``."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import trio
from attrs import define
from dsh_hookspecs import Context

from dsh_plugin_mcp_server._config import Config

if TYPE_CHECKING:
    from dsh_plugin_mcp_server._streams import ReadStream, Transport, WriteStream


def apply(ctx: Context, config: Config) -> None:
    """Provide the service."""
    ctx.provide("mcp_server", McpServer(ctx, config))


@define
class McpServer:
    """Serves MCP clients with the host's tools, each client in a task of the plugin's own."""

    _ctx: Context
    _config: Config

    async def serve_stdio(self) -> None:
        """Serve the client at the other end of this process's stdin and stdout; return when it has left.

        Meanwhile nothing else of the process reads the one or writes the other: stdin is empty, stdout is stderr.
        """
        stdio_transport = (await _loaded("_stdio")).stdio_transport
        with stdio_transport(self._config.max_message_bytes) as transport:
            await self._serve(transport)

    async def serve(self, read_stream: ReadStream, write_stream: WriteStream) -> None:
        """Serve the client at the other end of two message streams; return when it has left."""
        transport = (await _loaded("_streams")).Transport(read_stream, write_stream)
        await self._serve(transport)

    async def serve_http(self, listening: Callable[[str], None] | None = None) -> None:
        """Serve clients over streamable HTTP until the plugin ends or the wait is cancelled.

        ``listening`` is told the URL as soon as the server listens there. Raises a ``HarnessError`` if it may not or
        cannot listen.
        """
        serve_http = (await _loaded("_http.listen")).serve_http
        await self._visit(partial(serve_http, self._ctx, self._config, listening))

    async def _serve(self, transport: Transport) -> None:
        serve_client = (await _loaded("_session")).serve_client
        await self._visit(partial(serve_client, self._ctx, self._config, transport))

    async def _visit(self, serve: Callable[[], Awaitable[None]]) -> None:
        visit = _Visit(serve)
        self._ctx.start_soon(visit.run)
        await visit.over()


async def _loaded(module: str) -> Any:
    """A module of the plugin that needs the SDK, which takes its time: the event loop goes on meanwhile."""
    name = f"dsh_plugin_mcp_server.{module}"
    return sys.modules.get(name) or await trio.to_thread.run_sync(import_module, name)


class _Visit:
    """Clients are served by a task of the plugin, so that it ends with the plugin, while somebody else waits for it."""

    def __init__(self, serve: Callable[[], Awaitable[None]]) -> None:
        self._serve = serve
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._error: Exception | None = None

    async def run(self) -> None:
        """Serve; what goes wrong is for the one who waits."""
        try:
            with self._scope:
                await self._serve()
        except Exception as error:
            self._error = error
        finally:
            self._over.set()

    async def over(self) -> None:
        """Wait until the clients have left or the plugin has ended; end the visit if the wait is cancelled."""
        try:
            await self._over.wait()
        except trio.Cancelled:
            self._scope.cancel()
            with trio.CancelScope(shield=True):
                await self._over.wait()
            raise
        if self._error is not None:
            raise self._error
