"""What every plugin keeps to."""

from pathlib import Path

import dsh_plugin_audit_jsonl
import pytest

from dsh_runtime.testing import FakeTool, PluginChecks, call
from dsh_runtime.testing.checks import Subject


class TestAuditJsonl(PluginChecks):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def subject(self) -> Subject:
        plugin = (dsh_plugin_audit_jsonl, {"path": str(self.root / "audit.jsonl")})
        return Subject(plugin, companions=(FakeTool("look", "seen"),), calls=(call("look"),))
