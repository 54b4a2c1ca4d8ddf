"""What every plugin keeps to."""

import dsh_plugin_retry

from dsh_runtime.testing import FakeTool, PluginChecks, call


class TestRetry(PluginChecks):
    plugin = dsh_plugin_retry
    companions = (FakeTool("look", "seen", idempotent=True),)
    calls = (call("look"),)
