"""Which folders are there to be watched: one that is gone is waited for by way of the nearest that is not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

Identity: TypeAlias = tuple[int, int]
"""What tells a folder from another one that has come in its place."""


Stamp: TypeAlias = "tuple[int, ...] | None"
"""What tells a file from what it was; ``None`` if it is not there."""


def stamp_of(file: Path) -> Stamp:
    """What a file is by now; a symbolic link is followed."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev)


def places_of(folders: Iterable[Path]) -> dict[Path, Identity]:
    """The folders to watch so that nothing in ``folders`` is missed, with their identities."""
    found: dict[Path, Identity] = {}
    for folder in folders:
        place = _nearest(folder)
        if place is not None:
            found[place[0]] = place[1]
    return found


def _nearest(folder: Path) -> tuple[Path, Identity] | None:
    for place in (folder, *folder.parents):
        identity = _identity(place)
        if identity is not None:
            return place, identity
    return None


def _identity(folder: Path) -> Identity | None:
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if os.path.isdir(folder) else None
