"""What all tests share: no test writes the log of the user who runs it, and an interrupt is one."""

from __future__ import annotations

import signal

import pytest


def pytest_configure() -> None:
    """A shell starts what runs in the background deaf to SIGINT, and every process below it is so, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts that keep a log keep it in a folder of the test's own; so do the processes that the test starts."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
