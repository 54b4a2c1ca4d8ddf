"""Which folders are there to be watched: one that is gone is waited for by way of the nearest that is not."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

from .relevance import SOURCES

MAX_SOURCES: Final = 10_000
MAX_AT_ONCE: Final = 100

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


def sources_since(when: int, folders: Iterable[Path]) -> bool:
    """Whether a source in one of the folders was written after ``when``, in nanoseconds; not too many are looked at."""
    files = (path for folder in folders for path in _sources_in(folder))
    stamps = map(stamp_of, itertools.islice(files, MAX_SOURCES))
    return any(stamp is not None and stamp[0] > when for stamp in stamps)


def _sources_in(folder: Path) -> Iterator[Path]:
    try:
        yield from (folder / name for name in os.listdir(folder) if name.endswith(SOURCES))
    except OSError:
        return


class Places:
    """The folders to watch so that nothing in ``folders`` is missed, as they were when this was made."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._found = {folder: _nearest(folder) for folder in folders}
        self._turn: Iterator[Path] = iter(())

    @property
    def to_watch(self) -> frozenset[Path]:
        """The folders that are there."""
        return frozenset(place[0] for place in self._found.values() if place is not None)

    def are_others(self) -> bool:
        """Whether one has gone, come or been exchanged. Of very many, some are looked at, and others the next time."""
        some = [*itertools.islice(self._turn, MAX_AT_ONCE)]
        if not some:
            self._turn = iter(self._found)
            some = [*itertools.islice(self._turn, MAX_AT_ONCE)]
        return any(self._found[folder] != _nearest(folder) for folder in some)


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
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None
