"""Brings the tools of one MCP server into the host, under its policy.

A row of the config is a server: a program that speaks over its stdin and stdout, or an endpoint of streamable HTTP. Its
tools are tools of the host like any other for as long as it is there.

Layering, lowest first: ``_config``, ``_errors``, ``_closing``, ``_lines``, ``_sieve``; ``_stderr``, ``_messages``,
``_patterns``, ``_sieved``; ``_process``, ``_endpoint``, ``_schemas``, ``_results``, ``_fingerprints``; ``_connection``;
``_tools``; ``_keeper``; ``_plugin``; beside them ``_import``, ``_commands``. The MCP SDK is imported when the plugin is
applied, not before.
"""

from dsh_plugin_mcp_client._config import Config
from dsh_plugin_mcp_client._plugin import apply

__all__ = ["Config", "apply", "inject", "name", "reload_policy"]

name = "mcp-client"
inject = ("tools",)
#: The new version cannot connect before its tasks run, and they run when the old one has gone.
reload_policy = "stop-first"
