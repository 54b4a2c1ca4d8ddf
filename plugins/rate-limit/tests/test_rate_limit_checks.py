"""What every plugin keeps to."""

import dsh_plugin_rate_limit

from dsh_runtime.testing import PluginChecks


class TestRateLimit(PluginChecks):
    plugin = (dsh_plugin_rate_limit, {"rules": [{"tools": ["*"], "calls": 1000, "seconds": 1}]})
