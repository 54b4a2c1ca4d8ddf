"""Texts for people: made safe for a terminal, and laid out in columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

Part: TypeAlias = "str | tuple[str, str]"
"""A piece of a line: a text, or a text and the style that it has on a terminal."""

_PLAIN: Final = re.compile("[\t\n -~]*")
"""What nearly every text is made of."""


def visible(text: str) -> str:
    """The text, its tabs and line breaks, with everything else written out that could steer a terminal or hide."""
    if _PLAIN.fullmatch(text):
        return text
    from dsh_runtime.cards import unseen

    return "\n".join(map(unseen.visible, text.split("\n")))


def one_line(text: str) -> str:
    """The text on one line, safe to print."""
    return visible(" ".join(text.split()))


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((one_line(line) for line in text.splitlines() if line.strip()), "")


def shortened(text: str, limit: int) -> str:
    """The text, cut where it gets too long."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines whose columns stand below one another."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 tool``, ``2 tools``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
