"""A card as rich draws it: a rule on the left, rows folded beside it, the status at its end.

There is no rule on the right, since terminals do not agree on the width of every character. Text goes in as spans
alone, so no markup, emoji code or highlighter ever reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style as Look
from rich.text import Text

from dsh_runtime.cards.model import Card, Row, Span, Style
from dsh_runtime.cards.width import TAB, columns_of, fold_points

STYLES: Final[dict[Style, str]] = {
    "plain": "",
    "title": "bold",
    "path": "cyan",
    "number": "dim",
    "key": "cyan",
    "added": "green",
    "removed": "red",
    "note": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "escape": "reverse",
}
_UNICODE: Final = ("╭ ", "│ ", "╰ ")
_ASCII: Final = ("+ ", "| ", "+ ")
#: Below these widths the rule, and the gutters, are left out.
_MIN_WITH_RULE: Final = 20
_MIN_BODY: Final = 8


class Drawing:
    """What rich prints for a card."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        top, side, bottom = _ASCII if options.ascii_only else _UNICODE
        width = options.max_width
        ruled = width >= _MIN_WITH_RULE
        inner = width - len(side) if ruled else width
        rule = _rule_style(self.card)
        lines = list(_lines(self.card, inner, console))
        for number, line in enumerate(lines):
            if ruled:
                mark = top if number == 0 else bottom if number == len(lines) - 1 else side
                yield Segment(mark if line.plain else mark.rstrip(), console.get_style(rule))
            yield from (Segment(text, style) for text, style, _ in line.render(console))
            yield Segment.line()

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)


def drawing(card: Card) -> Drawing:
    """Something that a rich console prints, in whatever width it has."""
    return Drawing(card)


def _rule_style(card: Card) -> str:
    styles = {span.style for span in card.status}
    return "red" if "bad" in styles else "green" if "good" in styles else "dim"


def _lines(card: Card, width: int, console: Console) -> Iterable[Text]:
    if card.title:
        yield from _folded(Row(card.title), width, console)
    for row in card.rows:
        yield from _folded(row, width, console)
    yield from _folded(Row(card.status), width, console)


def _folded(row: Row, width: int, console: Console) -> Iterable[Text]:
    """The lines of one row: the gutter in front of the first, room for it in front of the others."""
    gutter, body = _text(row.gutter), _text(row.body)
    room = width - columns_of(gutter.plain)
    if gutter.plain and room < _MIN_BODY:
        gutter.rstrip()
        yield from _pieces(gutter, width) if gutter.plain else ()
        gutter, room = Text(), width
    blank = Text(" " * columns_of(gutter.plain))
    pieces = body.wrap(console, room, overflow="fold") if row.prose and room >= _MIN_BODY else _pieces(body, room)
    for number, piece in enumerate(pieces):
        piece.rstrip()
        yield Text.assemble(blank if number else gutter, piece)


def _pieces(text: Text, width: int) -> Sequence[Text]:
    points = fold_points(text.plain, max(1, width))
    return list(text.divide(points)) if points else [text]


def _text(spans: Iterable[Span]) -> Text:
    text = Text(tab_size=TAB, end="")
    for span in spans:
        text.append(span.text.replace("\t", " " * TAB), Look.parse(STYLES[span.style]))
    return text
