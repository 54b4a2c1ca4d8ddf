"""The fixtures that any project gets with ``dsh-runtime[testing]``. Imports nothing of the host before one is used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from dsh_runtime.testing import Trial, VirtualClock


def _needs_trio() -> None:
    if find_spec("pytest_trio") is None:
        pytest.fail("this fixture needs pytest-trio; install dsh-runtime[testing]", pytrace=False)


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """Virtual time for the test: it moves on whenever the host has nothing to do."""
    _needs_trio()
    from dsh_runtime.testing import VirtualClock

    return VirtualClock()


@pytest.fixture
def dsh_trial() -> Callable[..., AbstractAsyncContextManager[Trial]]:
    """Opens hosts: ``async with dsh_trial(plugin, …) as trial``."""
    _needs_trio()
    from dsh_runtime.testing import open_trial

    return open_trial
