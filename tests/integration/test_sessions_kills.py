"""After ``kill -9`` at any instant every answered call is in the log, and every other one is closed as interrupted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KILLS = Path(__file__).parent / "sessions_kills.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="victims are forks")


def kill_hosts(folder: Path, seed: int, kills: int) -> Any:
    """Run the killer; it ends with a message when a promise is broken."""
    command = [sys.executable, str(KILLS), str(folder / "sessions.db"), str(seed), str(kills)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2_000:]
    return json.loads(done.stdout)


def test_nothing_answered_is_lost_in_40_kills(tmp_path: Path) -> None:
    """Under load, with both modes of ``sync``; kills hit calls under way; no lock file stays."""
    seen = kill_hosts(tmp_path, seed=1, kills=40)
    assert seen["answered"] > 100
    assert seen["interrupted"] > 10
    assert seen["left"] == []


@pytest.mark.skipif("DSH_TEST_SLOW" not in os.environ, reason="500 kills take half a minute; set DSH_TEST_SLOW")
def test_nothing_answered_is_lost_in_500_kills(tmp_path: Path) -> None:
    """The same, at more instants."""
    seen = kill_hosts(tmp_path, seed=2, kills=500)
    assert seen["kills"] == 500
    assert seen["left"] == []
