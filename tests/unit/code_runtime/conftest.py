"""A runtime, and a look at what a test leaves behind."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
pytest.register_assert_rewrite("runtime_kit")


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each test no process, no zombie, no descriptor and no working directory is left."""
    from runtime_kit import descendants

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before, descriptors = descendants(), len(os.listdir("/proc/self/fd"))
    yield
    assert descendants() <= before
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert list(tmp_path.glob("dsh-program-*")) == []
