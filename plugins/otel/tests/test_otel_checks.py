"""What every plugin keeps to."""

import dsh_plugin_otel

from dsh_runtime.testing import PluginChecks


class TestOtel(PluginChecks):
    plugin = dsh_plugin_otel
