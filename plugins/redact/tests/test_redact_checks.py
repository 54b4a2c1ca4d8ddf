"""What every plugin keeps to."""

import dsh_plugin_redact

from dsh_runtime.testing import PluginChecks


class TestRedact(PluginChecks):
    plugin = dsh_plugin_redact
