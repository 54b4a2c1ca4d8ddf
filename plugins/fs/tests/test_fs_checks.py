"""What every plugin keeps to."""

from pathlib import Path

import dsh_plugin_fs
import pytest

from dsh_runtime.testing import PluginChecks, call
from dsh_runtime.testing.checks import Subject


class TestFs(PluginChecks):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("one\n")
        self.root = tmp_path

    def subject(self) -> Subject:
        config = {"roots": [str(self.root)]}
        calls = (
            call("fs_read", path=str(self.root / "a.txt")),
            call("fs_write", path=str(self.root / "b.txt"), content="two\n"),
            call("fs_glob", pattern="*.txt"),
            call("fs_grep", pattern="one"),
        )
        return Subject((dsh_plugin_fs, config), calls=calls)
