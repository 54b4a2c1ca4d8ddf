"""What every plugin keeps to."""

import dsh_plugin_rate_limit

from dsh_runtime.testing import PluginChecks, call


class TestRateLimit(PluginChecks):
    plugin = (dsh_plugin_rate_limit, {"rules": [{"tools": ["limited"], "calls": 1, "seconds": 3600}]})
    calls = (call("limited"),)
    denies = (call("limited"),)
