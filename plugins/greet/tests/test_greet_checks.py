"""What every plugin keeps to."""

import dsh_plugin_greet

from dsh_runtime.testing import PluginChecks


class TestGreet(PluginChecks):
    plugin = dsh_plugin_greet
    calls = (("greet", {"name": "Ada"}),)
