"""The service ``mcp_server``."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        from dsh_plugin_mcp_server._stdio import stdio_transport

        with stdio_transport(self._config.max_message_bytes) as transport:
            await self._serve(transport)

    async def serve(self, read_stream: ReadStream, write_stream: WriteStream) -> None:
        """Serve the client at the other end of two message streams; return when it has left."""
        from dsh_plugin_mcp_server._streams import Transport

        await self._serve(Transport(read_stream, write_stream))

    async def _serve(self, transport: Transport) -> None:
        visit = _Visit(self._ctx, self._config, transport)
        self._ctx.start_soon(visit.run)
        await visit.over()


class _Visit:
    """A client is served by a task of the plugin, so that it ends with the plugin, while somebody else waits for it."""

    def __init__(self, ctx: Context, config: Config, transport: Transport) -> None:
        self._ctx = ctx
        self._config = config
        self._transport = transport
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._error: Exception | None = None

    async def run(self) -> None:
        """Serve the client; what goes wrong is for the one who waits."""
        from dsh_plugin_mcp_server._session import serve_client

        try:
            with self._scope:
                await serve_client(self._ctx, self._config, self._transport)
        except Exception as error:
            self._error = error
        finally:
            self._over.set()

    async def over(self) -> None:
        """Wait until the client has left or the plugin has ended; end the visit if the wait is cancelled."""
        try:
            await self._over.wait()
        except trio.Cancelled:
            self._scope.cancel()
            with trio.CancelScope(shield=True):
                await self._over.wait()
            raise
        if self._error is not None:
            raise self._error
