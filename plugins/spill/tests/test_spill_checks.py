"""What every plugin keeps to."""

from pathlib import Path

import dsh_plugin_spill
import pytest

from dsh_runtime.testing import FakeTool, PluginChecks, call
from dsh_runtime.testing.checks import Subject


class TestSpill(PluginChecks):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def subject(self) -> Subject:
        plugin = (dsh_plugin_spill, {"folder": str(self.root / "spill"), "tool": True})
        return Subject(plugin, companions=(FakeTool("tell", "long " * 10_000),), calls=(call("tell"),))
