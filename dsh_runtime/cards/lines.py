"""Texts in lines, of any size."""

from __future__ import annotations

from collections.abc import Iterator

from dsh_runtime.cards.model import Row, Span, Style


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text one by one; LF or CRLF ends a line, and a last one that is empty is none."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end].removesuffix("\r")
        start = end + 1
    if start < len(text):
        yield text[start:]


def first_line(text: str) -> tuple[str, str]:
    """A text's first line, and the rest."""
    head, _, rest = text.partition("\n")
    return head.removesuffix("\r"), rest


def text_rows(text: str, style: Style = "plain", *, indent: str = "", prose: bool = False) -> Iterator[Row]:
    """The rows of a text."""
    gutter = (Span(indent),) if indent else ()
    for line in lines_of(text):
        yield Row((Span(line, style),), gutter, prose)


def counted(number: int, noun: str, many: str | None = None) -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"
