"""What the modules of the views draft: a card whose text is as it came."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from attrs import frozen

from dsh_runtime.cards.lines import first_line, text_rows
from dsh_runtime.cards.model import Bounds, Card, Row, Span
from dsh_runtime.cards.page import lay_out, safe_line


@frozen
class Draft:
    """A card before it is bounded and safe; ``prompt`` stands in front of its title."""

    card: str
    title: str
    rows: Iterable[Row] = ()
    status: tuple[Span, ...] = ()
    prompt: str = ""


def finish(draft: Draft, bounds: Bounds) -> Card:
    """The card; the lines of its title behind the first one become its first rows."""
    head, rest = first_line(draft.title)
    title, title_is_whole = safe_line((Span(draft.prompt, "note"), Span(head, "title")), bounds.columns)
    more = text_rows(rest, "title", indent=" " * len(draft.prompt))
    rows, rows_are_whole = lay_out(chain(more, draft.rows), bounds)
    status, status_is_whole = safe_line(draft.status, bounds.columns)
    return Card(draft.card, title, rows, status, title_is_whole and rows_are_whole and status_is_whole)


def joined(*facts: Span | str | None) -> tuple[Span, ...]:
    """Facts on one line, with a dot between them; empty ones are left out."""
    spans: list[Span] = []
    for fact in facts:
        span = Span(fact, "note") if isinstance(fact, str) else fact
        if span is not None and span.text:
            spans += [Span(" · ", "note")] if spans else []
            spans.append(span)
    return tuple(spans)
