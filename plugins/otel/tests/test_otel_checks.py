"""What every plugin keeps to."""

import dsh_plugin_otel

from dsh_runtime.testing import FakeTool, PluginChecks, call


class TestOtel(PluginChecks):
    plugin = dsh_plugin_otel
    companions = (FakeTool("look", "seen"),)
    calls = (call("look"),)
