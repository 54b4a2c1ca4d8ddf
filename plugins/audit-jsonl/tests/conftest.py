"""The kit stands beside the tests, which are no package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("audit_kit")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where the audit log is to be."""
    return tmp_path / "audit.jsonl"
