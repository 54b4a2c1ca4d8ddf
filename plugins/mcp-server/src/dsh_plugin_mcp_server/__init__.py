"""Serves the host's tools to MCP clients.

The plugin provides the service ``mcp_server``. ``await ctx.mcp_server.serve_stdio()`` serves the client at the other
end of this process's stdin and stdout until it leaves; ``serve(read_stream, write_stream)`` serves over any pair of
message streams. Every client session is a scope of its own, and its key is the agent of the session's calls; where the
host keeps a session log, it has a session there, too.

Layering, lowest first: ``_config``, ``_wire``, ``_streams``, ``_limits``; ``_presentation``; ``_tools``, ``_results``,
``_elicitation``; ``_calls``, ``_backlog``; ``_outlet``, ``_intake``, ``_news``, ``_talks``, ``_channel``; ``_rounds``;
``_methods``; ``_session``; ``_lines``, ``_fds``; ``_stdio``, ``_http``; ``_service``; beside them ``_commands``. The
MCP SDK is imported when the first client is served, not before.
"""

from dsh_plugin_mcp_server._config import Config
from dsh_plugin_mcp_server._service import McpServer, apply

__all__ = ["Config", "McpServer", "apply", "inject", "name"]

name = "mcp-server"
inject = {"tools": True, "sessions": False}
