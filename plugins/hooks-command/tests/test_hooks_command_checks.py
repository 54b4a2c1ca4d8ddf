"""What every plugin keeps to."""

import dsh_plugin_hooks_command

from dsh_runtime.testing import PluginChecks, call


class TestHooksCommand(PluginChecks):
    plugin = (
        dsh_plugin_hooks_command,
        {
            "pre_tool_use": [{"command": "true"}, {"command": "echo never >&2; exit 2", "matcher": "erase"}],
            "post_tool_use": [{"command": "true"}],
        },
    )
    denies = (call("erase", path="notes"),)
