"""A kernel with a session log in a folder of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
pytest.register_assert_rewrite("sessions_kit")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log is going to be."""
    return tmp_path / "log" / "sessions.db"


@pytest.fixture
async def root() -> AsyncIterator[Any]:
    """The root context of a bare kernel."""
    from dsh_runtime.core.kernel import open_kernel

    async with open_kernel() as ctx:
        yield ctx


@pytest.fixture
async def sessions(root: Any, path: Path) -> Any:
    """The service, on the bare kernel."""
    from sessions_kit import mount

    return await mount(root, path)
