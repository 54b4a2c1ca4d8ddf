"""The only way from a root to a file: one name at a time, each relative to a directory that is held open.

Every name is looked at, then opened with ``O_NOFOLLOW`` below the descriptor of its directory. ``..`` goes back to the
descriptor that the walk came from, and never above the root. A symbolic link is read as text, and its names are walked
in the same way; one that leads out of its root is refused. So whatever is swapped for whatever else while a call runs,
no descriptor ever leaves the root. What was opened is looked at once more: only directories and regular files pass.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from errno import EINVAL, ELOOP, ENOENT, ENOTDIR
from types import TracebackType
from typing import Self

from dsh_plugin_fs._errors import Code, FsError
from dsh_plugin_fs._roots import DIRECTORY_FLAGS, MAX_DEPTH, Root, Target, is_unicode, split

#: How many links, and changes under its feet, one walk puts up with.
PATIENCE = 40
_FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Walk:
    """A walk through one root. It stands in ``directory``, which ``names`` lead to, without links or ``..``."""

    def __init__(self, target: Target) -> None:
        self.root: Root = target.root
        self.names: list[str] = []
        self._asked = target.asked
        self._patience = PATIENCE
        self._descriptors = [self.root.open()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._back_to(0)

    @property
    def directory(self) -> int:
        """The descriptor of the directory that the walk stands in."""
        return self._descriptors[-1]

    def to_directory(self, names: Iterable[str]) -> None:
        """Go into the directory that ``names`` lead to."""
        name = self._to_last(names)
        while name is not None and not self._down(name):
            name = self._to_last([name])

    def to_either(self, names: Iterable[str]) -> str | None:
        """Go into the directory that ``names`` lead to; if it is none, stop before it and return its name."""
        name = self._to_last(names)
        while name is not None and (seen := self.look(name)) is not None and stat.S_ISDIR(seen.st_mode):
            name = None if self._down(name) else self._to_last([name])
        return name

    def to_parent(self, names: Iterable[str], *, create: bool = False) -> str:
        """Go to the directory of the file that ``names`` lead to and return its name there; it need not exist.

        With ``create``, missing directories on the way are made.
        """
        name = self._to_last(names, create=create)
        if name is None:
            raise self._error("FS_NOT_A_FILE", "names a directory; name a file in it")
        return name

    def open_file(self, names: Iterable[str]) -> tuple[int, str]:
        """Open the regular file that ``names`` lead to for reading; return descriptor, to be closed, and name."""
        name = self.to_parent(names)
        while True:
            try:
                return self.open_here(name, os.O_RDONLY), name
            except OSError as error:
                if error.errno != ELOOP:
                    raise
            self._spend()
            name = self.to_parent([name])  # a link has taken the file's place since it was looked at

    def open_here(self, name: str, flags: int) -> int:
        """Open the regular file ``name`` in this directory; a link raises ``ELOOP``."""
        return open_regular(self.directory, name, flags, self._asked)

    def _to_last(self, names: Iterable[str], *, create: bool = False) -> str | None:
        """Walk until one name is left that is no link and no ``..``; return it, or ``None`` if none is left."""
        todo = list(names)[::-1]
        while todo:
            name = todo.pop()
            if name == "..":
                self._up()
                continue
            self._check_not_excluded(name)
            seen = self.look(name)
            if seen is not None and stat.S_ISLNK(seen.st_mode):
                todo.extend(reversed(self._read_link(name)))
            elif not todo:
                return name
            else:
                if seen is None and create:
                    self._make_directory(name)
                todo.extend([] if self._down(name) else [name])
        return None

    def look(self, name: str) -> os.stat_result | None:
        """Look at ``name`` in this directory itself, whatever it is; ``None`` if there is nothing."""
        try:
            return os.stat(name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def _check_not_excluded(self, name: str) -> None:
        """Refuse what does not exist for the tools, whether it exists or not; links on the way are names too."""
        names = [*self.names, name]
        if self.root.exclude.walk(names) is None:
            what = f"leads to '{'/'.join(names)}', which the config keeps from the file tools"
            raise self._error("FS_EXCLUDED", what)

    def _up(self) -> None:
        if not self.names:
            raise self._error("FS_OUTSIDE_ROOT", f"leads above its root '{self.root.path}'; stay inside it")
        os.close(self._descriptors.pop())
        self.names.pop()

    def _down(self, name: str) -> bool:
        """Go into the directory ``name``; ``False`` if it changed meanwhile and has to be looked at again."""
        if len(self.names) >= MAX_DEPTH:
            raise self._error("FS_BAD_PATH", f"leads more than {MAX_DEPTH} directories deep")
        try:
            self._descriptors.append(os.open(name, DIRECTORY_FLAGS, dir_fd=self.directory))
        except OSError as error:
            if error.errno not in (ENOTDIR, ELOOP):
                raise
            self._check_may_lead_on(name)
            return False
        self.names.append(name)
        return True

    def _check_may_lead_on(self, name: str) -> None:
        seen = self.look(name)
        if seen is not None and not stat.S_ISDIR(seen.st_mode) and not stat.S_ISLNK(seen.st_mode):
            place = "/".join([*self.names, name])
            raise self._error("FS_NOT_A_DIRECTORY", f"needs a directory where '{place}' is a file")
        self._spend()

    def _make_directory(self, name: str) -> None:
        try:
            os.mkdir(name, dir_fd=self.directory)
        except FileExistsError:
            self._spend()

    def _read_link(self, name: str) -> list[str]:
        """Return the names to walk instead of the link ``name``."""
        self._spend()
        try:
            text = os.readlink(name, dir_fd=self.directory)
        except OSError as error:
            if error.errno in (EINVAL, ENOENT):
                return [name]  # no link any more: look at it again
            raise
        if not is_unicode(text):
            raise self._error("FS_BAD_PATH", f"follows the link '{'/'.join([*self.names, name])}', which is no text")
        if not text.startswith("/"):
            return split(text)
        names = self.root.below(text)
        if names is None:
            link = "/".join([*self.names, name])
            raise self._error("FS_OUTSIDE_ROOT", f"follows the link '{link}' out of its root '{self.root.path}'")
        self._back_to(1)
        return names

    def _back_to(self, depth: int) -> None:
        while len(self._descriptors) > depth:
            os.close(self._descriptors.pop())
        del self.names[max(depth - 1, 0) :]

    def _spend(self) -> None:
        self._patience -= 1
        if self._patience < 0:
            raise self._error("FS_LINK_LOOP", f"leads through more than {PATIENCE} links; they may form a circle")

    def _error(self, code: Code, rule: str) -> FsError:
        return FsError(code, f"path '{self._asked}' {rule}")


def open_regular(directory: int, name: str, flags: int, shown: str) -> int:
    """Open ``name`` below ``directory`` if it is a regular file; a link raises ``ELOOP``.

    It is looked at first, since opening a device can set it to work; and again when it is open, since it may have been
    swapped in between.
    """
    _check_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), shown)
    descriptor = os.open(name, flags | _FILE_FLAGS, dir_fd=directory)
    try:
        _check_regular(os.fstat(descriptor), shown)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_regular(seen: os.stat_result, shown: str) -> None:
    if stat.S_ISREG(seen.st_mode):
        return
    if stat.S_ISLNK(seen.st_mode):
        raise OSError(ELOOP, os.strerror(ELOOP))
    kind = _KINDS.get(stat.S_IFMT(seen.st_mode), "no regular file")
    raise FsError("FS_NOT_A_FILE", f"'{shown}' is {kind}; only regular files can be opened")


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
