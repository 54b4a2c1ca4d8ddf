"""A host with the tool, and a look at what a test leaves behind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from shell_kit import Shell

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
pytest.register_assert_rewrite("shell_kit")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Hosts with the tool; afterwards no process, no zombie and no descriptor is left."""
    from shell_kit import Shell, children

    folder = tmp_path / "folder"
    folder.mkdir()
    shell = Shell(folder)
    before, descriptors = children(), len(os.listdir("/proc/self/fd"))
    yield shell
    assert shell.processes() == []
    assert children() <= before
    assert len(os.listdir("/proc/self/fd")) <= descriptors
