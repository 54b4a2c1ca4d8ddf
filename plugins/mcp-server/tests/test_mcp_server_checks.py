"""What every plugin keeps to."""

import dsh_plugin_mcp_server

from dsh_runtime.testing import PluginChecks


class TestMcpServer(PluginChecks):
    plugin = dsh_plugin_mcp_server
