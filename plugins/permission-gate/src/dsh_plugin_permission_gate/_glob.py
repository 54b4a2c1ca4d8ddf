"""Globs over whole strings, matched without backtracking.

====================  ============================================================================
``*``                 any run of characters, also none; ``/`` is a character like any other
``?``                 one character
``[a-z_]``, ``[!/]``  one character of the set, one that is not in it; ``[*]`` is a plain star
``**/``               any directories or none, at the start or after a ``/``; else ``**`` is ``*``
====================  ============================================================================

Everything else, the backslash included, stands for itself, and upper and lower case differ.

Strategy: a glob is cut at its stars into pieces of fixed width. The first is anchored at the start, the last at the
end, and each one between is taken at the leftmost place that it fits. Further to the right is never better: the star
behind it takes up whatever lies between. So no choice is ever undone, and a match costs at most
``len(text) * len(glob)`` steps, whoever wrote the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, Protocol

from attrs import frozen

#: Longer globs are refused: the cost of a match stays in proportion to the text.
MAX_GLOB: Final = 1000

_STARS: Final = re.compile(r"(?:(?<![^/])\*\*+/)+|\*+")
_FIXED: Final = re.compile(r"(?P<dirs>\*\*/)?(?P<before>\*)?(?P<text>[^*?\[]*)(?P<after>\**)")
_ITEM: Final = re.compile(r"\[(?P<set>!?+\]?+[^\]]*)\]|(?P<any>\?)|(?P<char>.)", re.DOTALL)
_RANGE: Final = re.compile(r"(?P<first>.)-(?P<last>.)|(?P<one>.)", re.DOTALL)


class GlobError(ValueError):
    """A text that is no glob."""


class _Piece(Protocol):
    """What stands between two stars."""

    @property
    def width(self) -> int: ...
    def at(self, text: str, start: int) -> bool: ...
    def find(self, text: str, start: int) -> int: ...


@frozen
class _Literal:
    """A piece of plain characters."""

    chars: str

    @property
    def width(self) -> int:
        return len(self.chars)

    def at(self, text: str, start: int) -> bool:
        return text.startswith(self.chars, start)

    def find(self, text: str, start: int) -> int:
        return text.find(self.chars, start)


@frozen
class _Pattern:
    """A piece with question marks or sets: a regular expression without repetition."""

    regex: re.Pattern[str]
    width: int

    def at(self, text: str, start: int) -> bool:
        return self.regex.match(text, start) is not None

    def find(self, text: str, start: int) -> int:
        found = self.regex.search(text, start)
        return -1 if found is None else found.start()


@frozen
class _Step:
    """A star and the piece behind it; ``dirs`` tells ``**/`` from ``*``."""

    dirs: bool
    piece: _Piece

    def leftmost(self, text: str, start: int) -> int:
        """Where the piece fits first, or -1."""
        if not self.dirs:
            return self.piece.find(text, start)
        while not self.piece.at(text, start):
            start = text.find("/", start) + 1
            if not start:
                return -1
        return start

    def reaches_end(self, text: str, start: int) -> bool:
        """Whether the piece, as the last one, fits at the end of the text."""
        last = len(text) - self.piece.width
        if last < start or not self.piece.at(text, last):
            return False
        return not self.dirs or last == start or text[last - 1] == "/"


@frozen
class Anchor:
    """A fixed text that a glob asks for, and where it wants it."""

    where: Literal["whole", "start", "end", "anywhere"]
    text: str


@frozen
class Glob:
    """A compiled glob."""

    source: str
    _head: _Piece
    _middle: tuple[_Step, ...]
    _last: _Step | None

    @property
    def anchors(self) -> Sequence[Anchor]:
        """Fixed texts of which any one is all that the glob asks for; empty if it takes more than that."""
        found = _FIXED.fullmatch(self.source)
        if found is None:
            return ()
        text, ends_open = found["text"], bool(found["after"])
        if found["before"]:
            return (Anchor("anywhere" if ends_open else "end", text),)
        here = Anchor("start" if ends_open else "whole", text)
        below = Anchor("anywhere" if ends_open else "end", f"/{text}")
        return (here, below) if found["dirs"] else (here,)

    def matches(self, text: str) -> bool:
        """Whether the glob covers the whole text."""
        if not self._head.at(text, 0):
            return False
        position = self._head.width
        if self._last is None:
            return position == len(text)
        for step in self._middle:
            start = step.leftmost(text, position)
            if start < 0:
                return False
            position = start + step.piece.width
        return self._last.reaches_end(text, position)


def compile_glob(source: str) -> Glob:
    """Make a glob ready for matching; raise :class:`GlobError` for what is none."""
    if len(source) > MAX_GLOB:
        raise GlobError(f"a glob has at most {MAX_GLOB} characters, this one has {len(source)}: {source[:40]!r}...")
    head, *rest = _cut(source)
    steps = tuple(_Step(stars.endswith("/"), _piece(items, source)) for stars, items in rest)
    return Glob(source, _piece(head[1], source), steps[:-1], steps[-1] if steps else None)


def _cut(source: str) -> Iterator[tuple[str, str]]:
    """The pieces of a glob, each with the stars in front of it; the first has none."""
    stars, begin, position = "", 0, 0
    while position < len(source):
        found = _STARS.match(source, position)
        if found is None:
            position = _item(source, position).end()
            continue
        yield stars, source[begin:position]
        stars, begin = found[0], found.end()
        position = begin
    yield stars, source[begin:]


def _item(source: str, position: int) -> re.Match[str]:
    found = _ITEM.match(source, position)
    assert found is not None, "every character is an item"
    if found["char"] == "[":
        raise GlobError(f"glob {source!r} opens a set with '[' and never closes it; a plain bracket is written '[[]'")
    return found


def _piece(items: str, source: str) -> _Piece:
    found = list(_ITEM.finditer(items))
    if all(item["char"] for item in found):
        return _Literal(items)
    return _Pattern(re.compile("".join(_regex(item, source) for item in found), re.DOTALL), len(found))


def _regex(item: re.Match[str], source: str) -> str:
    if item["any"]:
        return "."
    if item["char"]:
        return re.escape(item["char"])
    members, negated = item["set"], item["set"].startswith("!")
    ranges = _RANGE.finditer(members[1:] if negated else members)
    return f"[{'^' if negated else ''}{''.join(_range(found, source) for found in ranges)}]"


def _range(found: re.Match[str], source: str) -> str:
    if found["one"]:
        return re.escape(found["one"])
    first, last = found["first"], found["last"]
    if first > last:
        raise GlobError(f"glob {source!r} has the range {first}-{last}, which is empty; write {last}-{first}")
    return f"{re.escape(first)}-{re.escape(last)}"
