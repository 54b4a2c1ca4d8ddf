"""What every plugin keeps to."""

import dsh_plugin_hooks_command

from dsh_runtime.testing import PluginChecks


class TestHooksCommand(PluginChecks):
    plugin = (dsh_plugin_hooks_command, {"pre_tool_use": [{"command": "true"}], "post_tool_use": [{"command": "true"}]})
