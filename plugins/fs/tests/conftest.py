"""A root with a directory beside it that no call may reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._roots import Roots, opened
from dsh_plugin_fs._search import Searcher
from dsh_plugin_fs._write import Writer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.mkdir()
    (path / "secret.txt").write_text("SECRET\n")
    return path


@pytest.fixture
def roots(root: Path) -> Iterator[Roots]:
    with opened([root]) as found:
        yield found


@pytest.fixture
def writer(roots: Roots) -> Writer:
    return Writer(roots, Limits())


@pytest.fixture
def searcher(roots: Roots) -> Searcher:
    return Searcher(roots, Limits())
