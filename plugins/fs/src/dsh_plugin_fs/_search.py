"""Find files by name (glob) and lines by content (grep)."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from attrs import field, frozen

from dsh_plugin_fs._errors import FsError, from_os_error, os_errors
from dsh_plugin_fs._glob import Glob, file_filter
from dsh_plugin_fs._limits import Limits, Poll, never
from dsh_plugin_fs._match import Matcher
from dsh_plugin_fs._roots import Roots
from dsh_plugin_fs._text import decode, read_up_to
from dsh_plugin_fs._tree import Tree, TreeFile
from dsh_plugin_fs._walk import Walk, open_regular

_POLL_LINES = 1_000
_BEFORE_MATCH = 80
#: Why a file of a tree was not searched; one that has gone meanwhile, or is a link now, is no longer there to count.
_REASONS = {"FS_IS_BINARY": "binary", "FS_NOT_UTF8": "binary", "FS_TOO_LARGE": "too_large"}
_GONE = ("FS_NOT_FOUND", "FS_NOT_A_FILE", "FS_CHANGED")


@frozen
class PathsFound:
    """Files found by name; ``total`` counts those beyond the bound too, ``skipped`` what could not be visited."""

    paths: tuple[str, ...]
    total: int
    skipped: Mapping[str, int]

    @property
    def truncated(self) -> bool:
        """Whether more was found than is listed."""
        return self.total > len(self.paths)


@frozen
class MatchedLine:
    """A line that matches; a long one is cut around the match."""

    line_number: int
    line: str


@frozen
class MatchedFile:
    """The lines of one file that match."""

    path: str
    matches: tuple[MatchedLine, ...]


@frozen
class LinesFound:
    """Lines found by content; ``total`` counts those beyond the bound too, ``skipped`` files that were not searched."""

    files: tuple[MatchedFile, ...]
    total: int
    skipped: Mapping[str, int]

    @property
    def truncated(self) -> bool:
        """Whether more was found than is listed."""
        return self.total > sum(len(file.matches) for file in self.files)


@frozen
class Searcher:
    """Searches below one directory at a time; never through links."""

    roots: Roots
    limits: Limits
    ignore: Collection[str] = (".git",)
    clock: Callable[[], float] = field(default=time.monotonic)

    def glob(self, pattern: str, path: str = ".", poll: Poll = never) -> PathsFound:
        """Find the files below ``path`` that ``pattern`` matches."""
        target, compiled, poll = self.roots.locate(path), Glob(pattern), self._until_deadline(poll)
        paths: list[str] = []
        total, skipped = 0, Counter[str]()
        with os_errors(path), Walk(target) as walk:
            walk.to_directory(target.names)
            for file in self._tree(walk, compiled, poll, skipped).files():
                total += 1
                if total <= self.limits.max_results:
                    paths.append(self.roots.show(walk.root, [*walk.names, *file.names]))
        return PathsFound(tuple(paths), total, dict(skipped))

    def grep(self, matcher: Matcher, path: str = ".", files: str = "**", poll: Poll = never) -> LinesFound:
        """Find the matching lines of the file ``path``, or of the files below it that the glob ``files`` names."""
        target, compiled, poll = self.roots.locate(path), file_filter(files), self._until_deadline(poll)
        findings = _Findings(matcher, self.limits, poll)
        with os_errors(path), Walk(target) as walk:
            name = walk.to_either(target.names)
            if name is not None:
                text = _read_text(walk.directory, name, path, self.limits.max_file_bytes)
                findings.add(self.roots.show(walk.root, [*walk.names, name]), text)
                return findings.result()
            for file in self._tree(walk, compiled, poll, findings.skipped).files():
                shown = self.roots.show(walk.root, [*walk.names, *file.names])
                findings.add_or_skip(file, shown)
        return findings.result()

    def _tree(self, walk: Walk, pattern: Glob, poll: Poll, skipped: Counter[str]) -> Tree:
        exclude = walk.root.exclude
        at = exclude.walk(walk.names)
        assert at is not None  # the walk would not have got here
        return Tree(walk.directory, pattern, exclude, at, self.ignore, poll, skipped)

    def describe_ignored(self) -> str:
        """Tell a model which directories are left out."""
        names = ", ".join(self.ignore)
        return f"Not searched unless path leads there: {names}." if names else ""

    def _until_deadline(self, poll: Poll) -> Poll:
        end = self.clock() + self.limits.search_seconds

        def check() -> None:
            poll()
            if self.clock() > end:
                message = f"the search took more than {self.limits.search_seconds:g} s; narrow 'path' or the pattern"
                raise FsError("FS_TIMEOUT", message)

        return check


class _Findings:
    """Collects matching lines, up to the bound, and counts the rest."""

    def __init__(self, matcher: Matcher, limits: Limits, poll: Poll) -> None:
        self.skipped = Counter[str]()
        self._matcher = matcher
        self._limits = limits
        self._poll = poll
        self._files: list[MatchedFile] = []
        self._room = limits.max_results
        self._total = 0

    def result(self) -> LinesFound:
        return LinesFound(tuple(self._files), self._total, dict(self.skipped))

    def add_or_skip(self, file: TreeFile, shown: str) -> None:
        """Search one file of a tree; count it as skipped if it cannot be searched."""
        self._poll()
        try:
            text = _read_text(file.directory, file.names[-1], shown, self._limits.max_file_bytes)
        except FsError as error:
            self._skip(error.code)
        except OSError as error:
            self._skip(from_os_error(error, shown).code)
        else:
            self.add(shown, text)

    def add(self, shown: str, text: str) -> None:
        """Search the text of one file."""
        if self._matcher.needle not in text:
            return
        matches: list[MatchedLine] = []
        for match in self._matches(text):
            self._total += 1
            if self._room:
                self._room -= 1
                matches.append(match)
        if matches:
            self._files.append(MatchedFile(shown, tuple(matches)))

    def _matches(self, text: str) -> Iterator[MatchedLine]:
        most, find = self._matcher.max_chars, self._matcher.find
        for number, line in enumerate(_split_lines(text), 1):
            if number % _POLL_LINES == 0:
                self._poll()
            if most and len(line) > most:
                self.skipped["long_lines"] += 1
                line = line[:most]
            at = find(line)
            if at is not None:
                yield MatchedLine(number, _excerpt(line, at, self._limits.max_match_chars))

    def _skip(self, code: str | None) -> None:
        if code not in _GONE:
            self.skipped[_REASONS.get(code or "", "unreadable")] += 1


def _read_text(directory: int, name: str, shown: str, max_bytes: int) -> str:
    file = open_regular(directory, name, os.O_RDONLY, shown)
    try:
        size = os.fstat(file).st_size
        if size > max_bytes:
            message = f"'{shown}' is {size:,} bytes large; files of up to {max_bytes:,} bytes are searched"
            raise FsError("FS_TOO_LARGE", f"{message}: use fs_read to read parts of it")
        return decode(read_up_to(file, size), shown).text
    finally:
        os.close(file)


def _split_lines(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]


def _excerpt(line: str, at: int, most: int) -> str:
    """Cut a long line around the match that begins at ``at``."""
    if len(line) <= most:
        return line
    start = min(max(at - _BEFORE_MATCH, 0), len(line) - most)
    return ("…" if start else "") + line[start : start + most] + ("…" if start + most < len(line) else "")
