"""The directories that the tools may use, and where in them a path from outside points.

A root is held open for as long as it is in use: it is that directory, whatever its name leads to later.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._exclude import Exclude

MAX_PATH_BYTES = 4_096
MAX_DEPTH = 100
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Root:
    """One directory that the tools may use.

    ``path`` is how it was named, ``real`` where that led when it opened, ``exclude`` what does not exist in it.
    """

    def __init__(self, path: str | Path, exclude: Exclude | None = None) -> None:
        self.exclude = exclude or Exclude()
        self.path = os.path.abspath(path)
        self.real = os.path.realpath(self.path, strict=True)
        self._descriptor = os.open(self.real, DIRECTORY_FLAGS)
        self._lock = threading.Lock()
        self._closed = False

    def open(self) -> int:
        """Return a new descriptor of the directory; the caller closes it."""
        with self._lock:
            if self._closed:
                raise FsError("FS_CLOSED", f"root '{self.path}' has been closed: its plugin was unloaded")
            return os.dup(self._descriptor)

    def close(self) -> None:
        """Let the directory go; a second time does nothing."""
        with self._lock:
            if not self._closed:
                self._closed = True
                os.close(self._descriptor)

    def below(self, path: str) -> list[str] | None:
        """Return the names that lead from the root to an absolute ``path``, or ``None`` if it starts elsewhere."""
        names = split(path)
        for own in (split(self.path), split(self.real)):
            if names[: len(own)] == own:
                return names[len(own) :]
        return None


@frozen
class Target:
    """Where a path points before anything is looked at: names (``..`` among them) below a root."""

    root: Root
    names: tuple[str, ...]
    asked: str
    is_directory: bool


class Roots:
    """All roots of one plugin instance. A relative path starts at the first."""

    def __init__(self, roots: Sequence[Root]) -> None:
        self._roots = tuple(roots)

    def __iter__(self) -> Iterator[Root]:
        return iter(self._roots)

    def locate(self, path: str) -> Target:
        """Say where ``path`` points; refuse what can be no path inside a root."""
        _check_path(path)
        root, names = self._below(path) if path.startswith("/") else (self._roots[0], split(path))
        if len(names) > MAX_DEPTH:
            raise FsError(
                "FS_BAD_PATH", f"path '{_short(path)}' has {len(names)} parts; at most {MAX_DEPTH} are allowed"
            )
        return Target(root, tuple(names), path, path.endswith(("/", "/.", "/..")) or path in (".", ".."))

    def show(self, root: Root, names: Iterable[str]) -> str:
        """Name a place as ``locate`` takes it: relative below the first root, absolute below the others."""
        below = "/".join(names)
        if root is self._roots[0]:
            return below or "."
        return f"{root.path.rstrip('/')}/{below}".rstrip("/")

    def describe(self) -> str:
        """Tell a model which paths there are."""
        first, *others = (f"'{root.path}'" for root in self._roots)
        more = f"; absolute ones may also lie in {', '.join(others)}" if others else ""
        return f"Relative paths start at {first}{more}."

    def close(self) -> None:
        """Close every root."""
        for root in self._roots:
            root.close()

    def _below(self, path: str) -> tuple[Root, list[str]]:
        found = [(root, names) for root in self._roots if (names := root.below(path)) is not None]
        if not found:
            known = ", ".join(f"'{root.path}'" for root in self._roots)
            raise FsError("FS_OUTSIDE_ROOT", f"path '{_short(path)}' lies outside the roots; they are {known}")
        return min(found, key=lambda pair: len(pair[1]))


@contextmanager
def opened(paths: Sequence[str | Path], exclude: Exclude | None = None) -> Iterator[Roots]:
    """Open every directory of ``paths`` as a root; close them behind the block."""
    roots = open_roots(paths, exclude)
    try:
        yield roots
    finally:
        roots.close()


def open_roots(paths: Sequence[str | Path], exclude: Exclude | None = None) -> Roots:
    """Open every directory of ``paths`` as a root, or none of them."""
    if not paths:
        raise FsError("FS_BAD_PATH", "'roots' is empty: name at least one directory that the file tools may use")
    roots: list[Root] = []
    wrong: list[str] = []
    for path in paths:
        try:
            roots.append(Root(path, exclude))
        except OSError as error:
            wrong.append(f"root '{path}' is no directory that can be opened: {error.strerror}")
    if wrong:
        Roots(roots).close()
        raise FsError("FS_NOT_FOUND", f"{'; '.join(wrong)}; correct 'roots'")
    return Roots(roots)


def split(path: str) -> list[str]:
    """Split at the slashes; empty names and ``.`` mean nothing and go."""
    return [name for name in path.split("/") if name not in ("", ".")]


def is_unicode(name: str) -> bool:
    """Say whether a name from the file system is text; others cannot be written as JSON."""
    return not any("\udc80" <= character <= "\udcff" for character in name)


def _check_path(path: str) -> None:
    reason = _flaw(path)
    if reason:
        raise FsError("FS_BAD_PATH", f"path '{_short(path)}' {reason}")


def _flaw(path: str) -> str | None:
    if not path:
        return "is empty; give a path below a root, or '.' for the first root itself"
    if "\0" in path:
        return "contains a NUL character, which no path can"
    if "\\" in path:
        return "contains a backslash; separate names with '/'"
    if path == "~" or path.startswith("~/"):
        return "starts with '~', which is not expanded here; give a path below a root"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "is no valid Unicode text"
    return f"is {size} bytes long; at most {MAX_PATH_BYTES} are allowed" if size > MAX_PATH_BYTES else None


def _short(path: str) -> str:
    readable = path.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return readable if len(readable) <= 120 else readable[:119] + "…"
