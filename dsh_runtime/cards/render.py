"""Cards drawn by a console of their own: the width is given, nothing is asked of a terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from dsh_runtime.cards.model import Card
from dsh_runtime.cards.rich_form import drawing

#: rich's own format without the fonts that it would have a browser fetch.
_SVG: Final = re.sub(r"\n\s*@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def to_terminal(cards: Card | Iterable[Card], *, width: int, colour: bool = False) -> str:
    """The cards as text for a terminal of some width; with ``colour`` it holds escape sequences."""
    console = _console(width, io.StringIO(), colour)
    with console.capture() as captured:
        _print(console, cards)
    return captured.get()


def to_svg(cards: Card | Iterable[Card], *, width: int, title: str = "") -> str:
    """The cards as an SVG image of a terminal; it refers to nothing outside itself."""
    console = _console(width, io.StringIO(), colour=True, record=True)
    _print(console, cards)
    return console.export_svg(title=title, code_format=_SVG)


def _console(width: int, file: io.StringIO, colour: bool, *, record: bool = False) -> Console:
    return Console(
        file=file,
        width=width,
        height=50,
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        force_interactive=False,
        record=record,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={},
    )


def _print(console: Console, cards: Card | Iterable[Card]) -> None:
    for card in (cards,) if isinstance(cards, Card) else cards:
        console.print(drawing(card))
