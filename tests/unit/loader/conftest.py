"""What the loader's tests share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a text to a file below the test's own directory."""

    def write_file(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return write_file


@pytest.fixture(autouse=True)
def modules_put_back() -> Iterator[None]:
    """A reload makes fresh modules; the tests that follow have imported the old ones, and are to find them again."""
    before = dict(sys.modules)
    yield
    sys.modules.update(before)
