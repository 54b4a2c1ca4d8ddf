"""What every plugin keeps to."""

import dsh_plugin_timeout

from dsh_runtime.testing import PluginChecks


class TestTimeout(PluginChecks):
    plugin = (dsh_plugin_timeout, {"default": 5})
