"""The one way from drafted rows to the rows of a card: whatever passes is bounded, then safe.

The modules of the views draft rows with the text as it came, lazily; what does not fit is counted, up to a bound, and
never made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from dsh_runtime.cards.lines import counted
from dsh_runtime.cards.model import Bounds, Row, Span, note, text_of
from dsh_runtime.cards.unseen import safe_spans
from dsh_runtime.cards.width import columns_of, head_within

_MAX_COUNTED: Final = 10_000


def lay_out(drafts: Iterable[Row], bounds: Bounds) -> tuple[tuple[Row, ...], bool]:
    """The rows that fit, and whether that is all; a note at the end says how many do not fit."""
    rows: list[Row] = []
    whole, left, waiting = True, bounds.bytes, iter(drafts)
    for draft in waiting:
        row = _safe(draft, bounds.columns)
        left -= _size(row)
        if len(rows) == bounds.lines or left < 0:
            rows.append(_omitted(waiting))
            return tuple(rows), False
        whole = whole and not row.cut
        rows.append(row)
    return tuple(rows), whole


def safe_line(spans: Iterable[Span], columns: int) -> tuple[tuple[Span, ...], bool]:
    """Spans on one line within some columns, and whether that is all of them."""
    row = _safe(Row(tuple(spans)), columns)
    return row.body, not row.cut


def _safe(draft: Row, columns: int) -> Row:
    body, omitted = _within(draft.body, columns)
    gutter, _ = _within(draft.gutter, columns)
    safe = tuple(_all_safe(body))
    if omitted:
        safe += (Span(f" … {counted(omitted, 'more character')}", "note"),)
    return Row(safe, tuple(_all_safe(gutter)), draft.prose, draft.cut or bool(omitted))


def _within(spans: Iterable[Span], columns: int) -> tuple[list[Span], int]:
    """The spans that fit, the last one cut, and the number of characters that do not."""
    kept: list[Span] = []
    omitted = 0
    for span in spans:
        head = head_within(span.text, columns) if not omitted else ""
        omitted += len(span.text) - len(head)
        columns -= columns_of(head)
        kept.append(Span(head, span.style))
    return kept, omitted


def _all_safe(spans: Iterable[Span]) -> Iterator[Span]:
    for span in spans:
        yield from safe_spans(span.text, span.style)


def _size(row: Row) -> int:
    return len(text_of(row.body).encode()) + len(text_of(row.gutter).encode()) + 1


def _omitted(waiting: Iterator[Row]) -> Row:
    number = 1 + sum(1 for _ in islice(waiting, _MAX_COUNTED))
    more = counted(number, "more line") if number <= _MAX_COUNTED else f"more than {_MAX_COUNTED:,} more lines"
    return note(f"… {more}", cut=True)
