"""What every plugin keeps to."""

import dsh_plugin_greet

from dsh_runtime.testing import PluginChecks, call


class TestGreet(PluginChecks):
    plugin = dsh_plugin_greet
    calls = (call("greet", name="Ada"),)
