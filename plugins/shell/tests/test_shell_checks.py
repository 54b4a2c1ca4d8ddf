"""What every plugin keeps to."""

from pathlib import Path

import dsh_plugin_shell
import pytest

from dsh_runtime.testing import PluginChecks, call
from dsh_runtime.testing.checks import Subject


class TestShell(PluginChecks):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def subject(self) -> Subject:
        plugin = (dsh_plugin_shell, {"folder": str(self.root)})
        # Generated commands could do anything.
        return Subject(plugin, calls=(call("shell_run", command="echo hello"),), never_generate=("shell_run",))
