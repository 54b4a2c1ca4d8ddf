"""A host, a recorder and the vector under test, for the tests of the pipeline's conformance."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "contract")]  # helpers stand beside the tests, which are no packages
pytest.register_assert_rewrite("pipeline_kit", "pipeline_vectors")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip from one place what lacks its vectors, so that the report has one line for each of their files."""
    for mark in item.iter_markers("skip"):
        reason = str(mark.kwargs.get("reason"))
        if "no conformance vectors" in reason:
            pytest.skip(reason)
    if item.path.name.startswith("test_pipeline") and "vector" in getattr(item, "fixturenames", ()):
        from pipeline_vectors import read_vectors

        read_vectors()  # a fixture that skips would be told at each test


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
def vector(request: pytest.FixtureRequest) -> Any:
    """The conformance vector whose id the test is given."""
    from pipeline_vectors import read_vectors

    return read_vectors()[request.param]
