"""Which changed files matter: sources, folders that may be packages, and the files that a config rests on."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

SOURCES: Final = (".py", ".so", ".pyd")
IGNORED: Final = frozenset(
    {
        ".git", ".hg", ".svn", "__pycache__", ".venv", "venv", "node_modules", "site-packages", "build", "dist",
        ".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".idea", ".vscode", ".eggs",
    }
)  # fmt: skip
"""Folders whose coming and going means nothing."""


def matters(path: Path, files: Collection[Path]) -> bool:
    """Whether a change of ``path`` can concern a host; ``files`` are those of its config."""
    if path in files:
        return True
    if path.name in IGNORED or path.name.startswith((".", "#")):
        return False
    if path.suffix:
        return path.suffix in SOURCES
    # A folder that has gone can no longer be told from a file.
    return os.path.isdir(path) or not os.path.lexists(path)
