"""What every plugin keeps to."""

import dsh_plugin_permission_gate

from dsh_runtime.testing import PluginChecks


class TestPermissionGate(PluginChecks):
    plugin = (dsh_plugin_permission_gate, {"default": "allow", "rules": [{"action": "deny", "tools": ["secret*"]}]})
