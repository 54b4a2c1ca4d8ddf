"""What every plugin keeps to."""

import dsh_plugin_repeat_reminder

from dsh_runtime.testing import FakeTool, PluginChecks, call


class TestRepeatReminder(PluginChecks):
    plugin = dsh_plugin_repeat_reminder
    companions = (FakeTool("look", "seen"),)
    calls = tuple(call("look") for _ in range(5))
