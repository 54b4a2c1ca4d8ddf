"""Which files do not exist for the tools: globs on the names that lead from a root to a file.

A directory that matches takes all below it along. Upper and lower case, and characters that Unicode calls compatible,
count as the same, since some file systems open one for the other.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TypeAlias

from dsh_plugin_fs._glob import Glob, States, file_filter

#: Where the patterns stand behind some names.
Reached: TypeAlias = tuple[States, ...]


class Exclude:
    """Some patterns at once. Start with ``start``, hand each name to ``step``."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._globs = tuple(_compiled(_folded(pattern)) for pattern in patterns)
        self.start: Reached = tuple(glob.start for glob in self._globs)

    def step(self, reached: Reached, name: str) -> Reached | None:
        """Return where the patterns stand behind ``name``; ``None`` if it is excluded."""
        if not self._globs:
            return reached
        name = _folded(name)
        moved = tuple(glob.step(states, name) for glob, states in zip(self._globs, reached, strict=True))
        excluded = any(glob.accepts(states) for glob, states in zip(self._globs, moved, strict=True))
        return None if excluded else moved

    def walk(self, names: Iterable[str]) -> Reached | None:
        """Return where the patterns stand behind all of ``names``; ``None`` if one of them is excluded."""
        reached: Reached | None = self.start
        for name in names:
            if reached is None:
                return None
            reached = self.step(reached, name)
        return reached


def _compiled(pattern: str) -> Glob:
    """Compile a pattern; one for all that is below a directory is one for the directory."""
    plain = pattern.rstrip("/") or pattern
    directory = plain.removesuffix("/**")
    return file_filter(plain) if directory in ("", plain) else Glob(directory)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
