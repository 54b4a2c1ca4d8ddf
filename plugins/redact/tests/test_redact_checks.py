"""What every plugin keeps to."""

import dsh_plugin_redact

from dsh_runtime.testing import FakeTool, PluginChecks, call


class TestRedact(PluginChecks):
    plugin = (dsh_plugin_redact, {"model": True, "value": True})
    companions = (FakeTool("login", {"password": "hunter2"}),)
    calls = (call("login"),)
