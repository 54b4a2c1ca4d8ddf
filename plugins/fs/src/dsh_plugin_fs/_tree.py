"""The files below a directory, in a fixed order, each beside the open descriptor of the directory that holds it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from errno import ELOOP, ENOENT, ENOTDIR

from attrs import frozen

from dsh_plugin_fs._exclude import Exclude, Reached
from dsh_plugin_fs._glob import Glob, States
from dsh_plugin_fs._limits import Poll
from dsh_plugin_fs._roots import DIRECTORY_FLAGS, MAX_DEPTH, is_unicode
from dsh_plugin_fs._write import is_temporary


@frozen
class TreeFile:
    """A regular file that was seen: ``names`` lead to it, ``directory`` is open while the caller looks at it."""

    directory: int
    names: tuple[str, ...]


@frozen
class Tree:
    """The files below ``directory`` that ``pattern`` matches and ``exclude`` does not, which stands at ``at``.

    Names are visited in order of their characters, directories and files alike. Links are not followed and no files;
    directories named in ``ignore`` are not entered. ``skipped`` counts what could not be visited.
    """

    directory: int
    pattern: Glob
    exclude: Exclude
    at: Reached
    ignore: Collection[str]
    poll: Poll
    skipped: Counter[str]

    def files(self) -> Iterator[TreeFile]:
        """Give one file after the other."""
        return self._below(self.directory, (), self.pattern.start, self.at)

    def _below(self, directory: int, names: tuple[str, ...], states: States, at: Reached) -> Iterator[TreeFile]:
        for name, kind in self._entries(directory):
            reached = self.pattern.step(states, name)
            if not reached or (behind := self.exclude.step(at, name)) is None:
                continue
            if kind == stat.S_IFREG and self.pattern.accepts(reached) and not is_temporary(name):
                yield TreeFile(directory, (*names, name))
            elif kind == stat.S_IFDIR and name not in self.ignore:
                yield from self._inside(directory, (*names, name), reached, behind)

    def _inside(self, parent: int, names: tuple[str, ...], states: States, at: Reached) -> Iterator[TreeFile]:
        if len(names) > MAX_DEPTH:
            self.skipped["too_deep"] += 1
            return
        try:
            directory = os.open(names[-1], DIRECTORY_FLAGS, dir_fd=parent)
        except OSError as error:
            if error.errno not in (ENOENT, ENOTDIR, ELOOP):  # those have gone, or are no directories any more
                self.skipped["unreadable"] += 1
            return
        try:
            yield from self._below(directory, names, states, at)
        finally:
            os.close(directory)

    def _entries(self, directory: int) -> list[tuple[str, int]]:
        """Return name and kind of what the directory holds, sorted."""
        found: list[tuple[str, int]] = []
        with os.scandir(directory) as entries:
            for entry in entries:
                self.poll()
                if is_unicode(entry.name):
                    found.append((entry.name, _kind(entry)))
                else:
                    self.skipped["unnameable"] += 1
        return sorted(found)


def _kind(entry: os.DirEntry[str]) -> int:
    try:
        if entry.is_symlink():
            return stat.S_IFLNK
        if entry.is_dir(follow_symlinks=False):
            return stat.S_IFDIR
        return stat.S_IFREG if entry.is_file(follow_symlinks=False) else 0
    except OSError:
        return 0
