"""A host and a recorder for the tests of the pipeline."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the kit stands beside the tests, which are no package
pytest.register_assert_rewrite("core_kit", "pipeline_kit", "pipeline_plans", "code_kit")


@pytest.fixture
async def host() -> AsyncIterator[Any]:
    """A bare host: no config, no plugins."""
    from dsh_runtime import open_host

    async with open_host() as host:
        yield host


@pytest.fixture
def rec(host: Any) -> Any:
    """A recorder on the host's root context."""
    from pipeline_kit import Recorder

    return Recorder(host.ctx)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Any]:
    """A folder for a config and plugins that are reloaded."""
    from reload_kit import project_in

    with project_in(tmp_path) as project:
        yield project


@pytest.fixture
async def root() -> AsyncIterator[Any]:
    """The root context of a bare kernel: no tools, no loader."""
    from dsh_runtime.core.kernel import open_kernel

    async with open_kernel() as ctx:
        yield ctx
