"""What all tests share: no test writes the log of the user who runs it."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts that keep a log keep it in a folder of the test's own; so do the processes that the test starts."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
