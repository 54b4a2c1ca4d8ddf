"""What every plugin keeps to."""

from pathlib import Path

import dsh_plugin_audit_jsonl
import pytest

from dsh_runtime.testing import PluginChecks
from dsh_runtime.testing.checks import Subject


class TestAuditJsonl(PluginChecks):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def subject(self) -> Subject:
        return Subject((dsh_plugin_audit_jsonl, {"path": str(self.root / "audit.jsonl")}))
