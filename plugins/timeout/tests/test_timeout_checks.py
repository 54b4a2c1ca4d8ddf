"""What every plugin keeps to."""

import dsh_plugin_timeout

from dsh_runtime.testing import FakeTool, PluginChecks, call


class TestTimeout(PluginChecks):
    plugin = (dsh_plugin_timeout, {"default": 5})
    companions = (FakeTool("look", "seen", timeout=3),)
    calls = (call("look"),)
