"""Paths of places inside a value, kept as linked segments so that depth costs nothing until one is shown."""

from __future__ import annotations

from typing import Any, TypeAlias

from attrs import frozen
from dsh_hookspecs import Violation

#: ``None`` is the root; a string segment names a member, an integer one an item.
Link: TypeAlias = "tuple[Link, str | int] | None"

_FULL_PATHS = 1_000_000  # characters spent on paths before deep ones are cut: hostile depth must cost nothing
_MOST = 24  # the segments of a path in a message, which is for people and models; of a longer one its two ends
_END = 8


def printable(text: str) -> str:
    """Escape lone surrogates, so that what names an offender is itself lossless JSON."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _segments(link: Link, most: int | None = None) -> list[str]:
    """Show each segment; with ``most``, only that many of the last, and that there are others."""
    segments: list[str] = []
    while link is not None and len(segments) != most:
        link, segment = link
        segments.append(f"[{segment}]" if isinstance(segment, int) else f".{printable(segment)}")
    if link is not None:
        segments.append("…")
    segments.reverse()
    return segments


@frozen(eq=False)
class _DeepViolation(Violation):
    """A violation whose path is too long to be read in a message."""

    shown: str

    def __str__(self) -> str:
        return f"{self.shown}: {self.message}"


class Report:
    """Collects violations with their paths: ``root.member[0].other``.

    With ``bare_members``, what stands below the root goes without it: ``member[0].other``. Texts show the first and
    the last segments of a deep path. Once very long paths have piled up, only the last ones of deep ones are kept.
    """

    def __init__(self, root: str, *, bare_members: bool = False) -> None:
        self.violations: list[Violation] = []
        self._root = root
        self._bare = bare_members
        self._spent = 0

    def place(self, link: Link) -> str:
        """Show a path in a text."""
        return self._joined(_ends(self._seen(link)))

    def add(self, link: Link, message: str) -> None:
        """Note one violation."""
        segments = self._seen(link)
        path, message = self._joined(segments), printable(message)
        self._spent += len(path)
        shown = _ends(segments)
        deep = len(shown) < len(segments)
        self.violations.append(_DeepViolation(path, message, self._joined(shown)) if deep else Violation(path, message))

    def _seen(self, link: Link) -> list[str]:
        return _segments(link) if self._spent < _FULL_PATHS else _segments(link, _MOST)

    def _joined(self, segments: list[str]) -> str:
        path = "".join(segments)
        return path.removeprefix(".") if self._bare and path else self._root + path


def _ends(segments: list[str]) -> list[str]:
    return segments if len(segments) <= _MOST + 1 else [*segments[:_END], "…", *segments[-_END:]]


def kind_of(value: Any) -> str:
    """Name a value's JSON type with its article, for messages."""
    if value is None:
        return "null"
    for types, name in _KIND_NAMES:
        if isinstance(value, types):
            return name
    return f"a {type(value).__name__}"


_KIND_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a number"),
    (str, "a string"),
    (dict, "an object"),
    ((list, tuple), "an array"),
)
