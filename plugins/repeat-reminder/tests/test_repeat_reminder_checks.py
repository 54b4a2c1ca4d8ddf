"""What every plugin keeps to."""

import dsh_plugin_repeat_reminder

from dsh_runtime.testing import PluginChecks


class TestRepeatReminder(PluginChecks):
    plugin = dsh_plugin_repeat_reminder
