"""What every plugin keeps to."""

from pathlib import Path

import dsh_plugin_mcp_client
import pytest
from gateway_kit import entry, row

from dsh_runtime.testing import PluginChecks, call
from dsh_runtime.testing.checks import Subject


class TestMcpClient(PluginChecks):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.root = tmp_path

    def subject(self) -> Subject:
        config = row("rude", self.root, tools=[entry("echo")])["config"]
        return Subject((dsh_plugin_mcp_client, config), calls=(call("echo", a=1),))
