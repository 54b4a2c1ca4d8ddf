"""Hostile text made visible: nothing that could steer a terminal, turn a line around or hide in it stays as it is.

Written out as an escape are control characters (C0 and C1; tabs stay), all format characters (bidirectional controls,
zero-width characters, tags), line and paragraph separators, lone surrogates and the letters that show nothing. A joiner
stays between two characters beyond ASCII, where scripts and emoji need it. Of a pile of combining marks on one
character the first few stay.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from dsh_runtime.cards.model import Span, Style

_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_JOINERS: Final = "\u200c\u200d"
_MARKS: Final = ("Mn", "Me")
_MAX_MARKS: Final = 4


def safe_spans(text: str, style: Style) -> tuple[Span, ...]:
    """The text in spans; what had to be written out is in the style ``escape``."""
    if text.isascii() and text.isprintable():
        return (Span(text, style),) if text else ()
    runs = groupby(_characters(text), key=lambda shown: shown[1])
    return tuple(Span("".join(shown for shown, _ in run), "escape" if escaped else style) for escaped, run in runs)


def visible(text: str) -> str:
    """The text with everything written out that could not be seen."""
    return "".join(span.text for span in safe_spans(text, "plain"))


def _characters(text: str) -> Iterator[tuple[str, bool]]:
    """Each character as it is shown, and whether that is an escape."""
    marks = 0
    for index, char in enumerate(text):
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARKS else 0
        if char in _JOINERS:
            hidden = not (_beyond_ascii(text, index - 1) and _beyond_ascii(text, index + 1))
        else:
            hidden = category in _UNSEEN or char in _BLANK_LETTERS or marks > _MAX_MARKS
        yield (_escaped(char), True) if hidden and char != "\t" else (char, False)


def _beyond_ascii(text: str, index: int) -> bool:
    return 0 <= index < len(text) and not text[index].isascii() and text[index] not in _JOINERS


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
