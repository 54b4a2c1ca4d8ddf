"""What every plugin keeps to."""

import dsh_plugin_retry

from dsh_runtime.testing import PluginChecks


class TestRetry(PluginChecks):
    plugin = dsh_plugin_retry
