"""What every plugin keeps to."""

import dsh_plugin_permission_gate

from dsh_runtime.testing import PluginChecks, call


class TestPermissionGate(PluginChecks):
    plugin = (
        dsh_plugin_permission_gate,
        {
            "default": "allow",
            "rules": [
                {"action": "deny", "tools": ["secret*"]},
                {"action": "deny", "tools": ["read"], "arguments": {"path": ["/etc/**"]}},
            ],
        },
    )
    calls = (call("read", path="/tmp/notes"),)
    denies = (call("secret"), call("read", path="/etc/passwd"))
