"""The default card: a title, locations, arguments or content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dsh_hookspecs import FileLocation, GenericCall, GenericResult

from dsh_runtime.cards.content import content_rows
from dsh_runtime.cards.draft import Draft
from dsh_runtime.cards.model import Row, Span, note
from dsh_runtime.cards.values import value_rows


def draft_call(view: GenericCall) -> Draft:
    """A pending call of any kind."""
    return Draft(view.card, view.title, _call_rows(view))


def draft_result(view: GenericResult, title: str, content: Any) -> Draft:
    """A completed call: the view's own content, or else the raw one."""
    return Draft(view.card, title, content_rows(content if view.content is None else view.content))


def draft_unknown(card: str, title: str, content: Any) -> Draft:
    """A view that is not known here: the raw content."""
    return Draft(card, title, content_rows(content))


def draft_unknown_call(card: str, title: str) -> Draft:
    """A pending view that is not known here."""
    return Draft(card, title, [note(f"a card of kind {card!r} cannot be shown here", cut=True)])


def location_rows(locations: Iterable[FileLocation]) -> Iterator[Row]:
    """Where a call reads or changes something."""
    for location in locations:
        line = () if location.line is None else (Span(f":{location.line}", "number"),)
        yield Row((Span("at ", "note"), Span(location.path, "path"), *line))


def _call_rows(view: GenericCall) -> Iterator[Row]:
    yield from location_rows(view.locations)
    if view.raw_input is not None:
        yield from value_rows(view.raw_input)
    if view.content is not None:
        yield from content_rows(view.content)
