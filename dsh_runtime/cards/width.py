"""How many columns a text takes."""

from __future__ import annotations

import unicodedata
from typing import Final

TAB: Final = 4
_NO_WIDTH: Final = ("Mn", "Me", "Cf")


def columns_of(text: str) -> int:
    """The columns that a text takes."""
    return len(text) if text.isascii() and "\t" not in text else sum(map(_width, text))


def head_within(text: str, columns: int) -> str:
    """The beginning of a text that fits."""
    if len(text) <= columns and text.isascii() and "\t" not in text:
        return text
    used = 0
    for index, char in enumerate(text):
        used += _width(char)
        if used > columns or index >= 4 * columns:  # marks take no column, and there may be any number of them
            return text[:index]
    return text


def fold_points(text: str, columns: int) -> list[int]:
    """Where to break a text so that each piece fits; a character wider than ``columns`` stands alone."""
    points, used = [], 0
    for index, char in enumerate(text):
        width = _width(char)
        if used and used + width > columns:
            points.append(index)
            used = 0
        used += width
    return points


def _width(char: str) -> int:
    if char == "\t":
        return TAB
    if char.isascii():
        return 1
    if unicodedata.category(char) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
