"""What every plugin keeps to."""

import dsh_plugin_approval_terminal

from dsh_runtime.testing import PluginChecks


class TestApprovalTerminal(PluginChecks):
    plugin = dsh_plugin_approval_terminal
