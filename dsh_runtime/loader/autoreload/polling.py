"""Look at the files again and again, where the system does not tell: network drives, Linux inside Windows, no watches.

watchfiles can do that too, and misses the second of two saves within a second.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from .places import Stamp, stamp_of
from .relevance import IGNORED, SOURCES

_log = logging.getLogger("dsh.host")

MAX_FILES: Final = 10_000
"""So many entries are looked at; those of a folder that holds more are not noticed."""
_PAUSE: Final = 0.5


class Polling:
    """Some folders as they were when somebody looked last."""

    def __init__(self, places: Iterable[Path]) -> None:
        self._places = tuple(places)
        self._told = False
        self._known = self._look()

    def wait(self, until: threading.Event) -> list[Path]:
        """What has changed, after a moment."""
        until.wait(_PAUSE)
        return self.rest()

    def rest(self) -> list[Path]:
        """What has changed since somebody asked last."""
        known, self._known = self._known, self._look()
        return [path for path in known.keys() | self._known.keys() if known.get(path) != self._known.get(path)]

    def close(self) -> None:
        """There is nothing to let go of."""

    def _look(self) -> dict[Path, Stamp]:
        found: dict[Path, Stamp] = {}
        for path in self._entries():
            if len(found) >= MAX_FILES:
                self._tell_of_too_many()
                break
            found[path] = _folder if path.is_dir() else stamp_of(path)
        return found

    def _entries(self) -> Iterator[Path]:
        for place in self._places:
            try:
                names = os.listdir(place)
            except OSError:
                continue
            for name in sorted(names):
                suffix = os.path.splitext(name)[1]
                if name not in IGNORED and (not suffix or suffix in SOURCES):
                    yield place / name

    def _tell_of_too_many(self) -> None:
        if not self._told:
            self._told = True
            _log.warning("there are more than %d files to look at; changes of the others go unnoticed", MAX_FILES)


_folder: Final[Stamp] = ()
"""Of a folder, what changes inside it does not count."""
