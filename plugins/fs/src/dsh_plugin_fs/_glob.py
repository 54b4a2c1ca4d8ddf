"""Glob patterns, matched one path part at a time.

``*``, ``?`` and ``[…]`` match within one name, ``**`` any number of directories, ``{a,b}`` either. Names that begin
with a dot are names like any other. The pattern runs as a set of states that each name moves forward, so the time is
bounded whatever the pattern, and a directory that nothing can match in is never entered.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from typing import TypeAlias

from dsh_plugin_fs._errors import FsError

MAX_PATTERN_CHARS = 1_000
MAX_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")

#: Positions in the alternatives of a pattern: (alternative, part).
States: TypeAlias = frozenset[tuple[int, int]]
_Part: TypeAlias = "re.Pattern[str] | None"


class Glob:
    """One compiled pattern. Start with ``start``, hand each name to ``step``, ask ``accepts`` at the file."""

    def __init__(self, pattern: str) -> None:
        _check(pattern)
        self._alternatives = [_compile(alternative, pattern) for alternative in _expand(pattern)]
        self.start: States = self._closure((index, 0) for index in range(len(self._alternatives)))

    def step(self, states: States, name: str) -> States:
        """Return where the pattern stands behind ``name``; no states mean that nothing below can match."""
        moved: list[tuple[int, int]] = []
        for alternative, at in states:
            parts = self._alternatives[alternative]
            if at == len(parts):
                continue
            part = parts[at]
            if part is None:
                moved.append((alternative, at))
            elif part.match(name):
                moved.append((alternative, at + 1))
        return self._closure(moved)

    def accepts(self, states: States) -> bool:
        """Say whether a file that led to ``states`` matches."""
        return any(at == len(self._alternatives[alternative]) for alternative, at in states)

    def matches(self, names: Iterable[str]) -> bool:
        """Say whether the file that ``names`` lead to matches."""
        states = self.start
        for name in names:
            states = self.step(states, name)
        return self.accepts(states)

    def _closure(self, states: Iterable[tuple[int, int]]) -> States:
        """Add the states that ``**`` reaches by standing for no directory at all."""
        reached: set[tuple[int, int]] = set()
        for alternative, at in states:
            parts = self._alternatives[alternative]
            reached.add((alternative, at))
            while at < len(parts) and parts[at] is None:
                at += 1
                reached.add((alternative, at))
        return frozenset(reached)


def file_filter(pattern: str) -> Glob:
    """Compile a pattern that filters files: without a slash it is about the name alone, in any directory."""
    return Glob(pattern if "/" in pattern else f"**/{pattern}")


def _check(pattern: str) -> None:
    reason = None
    if not pattern:
        reason = "is empty; '**' matches every file"
    elif len(pattern) > MAX_PATTERN_CHARS:
        reason = f"has {len(pattern)} characters; at most {MAX_PATTERN_CHARS} are allowed"
    elif pattern.startswith("/"):
        reason = "is absolute; give the directory as 'path' and a pattern relative to it"
    elif ".." in pattern.split("/"):
        reason = "contains '..'; give the directory to start in as 'path'"
    elif "\0" in pattern or "\\" in pattern:
        reason = "contains a NUL or a backslash; separate names with '/' and quote special characters as '[*]'"
    if reason:
        raise FsError("FS_BAD_PATTERN", f"glob pattern '{pattern[:80]}' {reason}")


def _expand(pattern: str) -> list[str]:
    """Return the alternatives that the braces of ``pattern`` stand for."""
    waiting, done = [pattern], list[str]()
    while waiting:
        if len(waiting) + len(done) > MAX_ALTERNATIVES:
            rule = f"stands for more than {MAX_ALTERNATIVES} alternatives; use fewer braces"
            raise FsError("FS_BAD_PATTERN", f"glob pattern '{pattern[:80]}' {rule}")
        this = waiting.pop()
        braces = _BRACES.search(this)
        if braces is None:
            done.append(this)
        else:
            head, tail = this[: braces.start()], this[braces.end() :]
            waiting.extend(head + option + tail for option in braces[1].split(","))
    return done


def _compile(alternative: str, pattern: str) -> list[_Part]:
    names = [name for name in alternative.split("/") if name not in ("", ".")]
    if not names:
        raise FsError("FS_BAD_PATTERN", f"glob pattern '{pattern[:80]}' names nothing; '**' matches every file")
    if names[-1] == "**" or alternative.endswith("/"):
        names = [*names, "*"] if names[-1] == "**" else [*names, "**", "*"]
    names = [name for name, following in zip(names, [*names[1:], ""], strict=True) if (name, following) != ("**", "**")]
    return [None if name == "**" else re.compile(fnmatch.translate(name)) for name in names]
