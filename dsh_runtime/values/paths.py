"""Paths of places inside a value, kept as linked segments so that depth costs nothing until one is shown."""

from __future__ import annotations

from typing import Any, TypeAlias

from dsh_hookspecs import Violation

#: ``None`` is the root; a string segment names a member, an integer one an item.
Link: TypeAlias = "tuple[Link, str | int] | None"

_FULL_PATHS = 1_000_000  # characters spent on paths before deep ones are shortened: hostile depth must cost nothing
_TAIL = 32  # the segments that a shortened path still shows


def printable(text: str) -> str:
    """Escape lone surrogates, so that what names an offender is itself lossless JSON."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def render(root: str, link: Link) -> str:
    """Show a path as ``root.member[0].other``."""
    return root + "".join(_segments(link))


def render_member(root: str, link: Link) -> str:
    """Show a path below a root that only its own violations name: ``member[0].other``."""
    segments = _segments(link)
    return "".join(segments).removeprefix(".") if segments else root


def _segments(link: Link) -> list[str]:
    segments = []
    while link is not None:
        link, segment = link
        segments.append(f"[{segment}]" if isinstance(segment, int) else f".{printable(segment)}")
    segments.reverse()
    return segments


def _short(root: str, link: Link) -> str:
    tail: list[str | int] = []
    while link is not None and len(tail) < _TAIL:
        link, segment = link
        tail.append(segment)
    shown: Link = None
    for segment in reversed(tail):
        shown = (shown, segment)
    return render(root if link is None else f"{root}…", shown)


class Report:
    """Collects violations; once very long paths have piled up, further deep ones are shown by their last segments."""

    def __init__(self, root: str, *, bare_members: bool = False) -> None:
        self.violations: list[Violation] = []
        self._root = root
        self._bare = bare_members
        self._spent = 0

    def place(self, link: Link) -> str:
        """Show a path the way this report does."""
        return render_member(self._root, link) if self._bare else render(self._root, link)

    def add(self, link: Link, message: str) -> None:
        """Note one violation."""
        path = self.place(link) if self._spent < _FULL_PATHS else _short(self._root, link)
        self._spent += len(path)
        self.violations.append(Violation(path, printable(message)))


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
