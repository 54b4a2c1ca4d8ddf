"""What the web gave: sources of a search, or how a fetch went. Addresses are text, never links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dsh_hookspecs import WebFetchResult, WebSearchResult, WebSource

from dsh_runtime.cards.draft import Draft, joined
from dsh_runtime.cards.lines import counted, text_rows
from dsh_runtime.cards.model import Row, Span

_TRUNCATED: Final = Span("truncated", "warn")
_FIRST_ERROR_CODE: Final = 400


def draft_search(view: WebSearchResult, title: str) -> Draft:
    """The answer, then the sources, numbered."""
    status = joined(counted(len(view.sources), "source"), _TRUNCATED if view.truncated else None)
    return Draft(view.card, title, _search_rows(view), status)


def draft_fetch(view: WebFetchResult, title: str) -> Draft:
    """The address and its status code."""
    code = Span(f"HTTP {view.status_code}", "bad" if view.status_code >= _FIRST_ERROR_CODE else "good")
    rows = [Row((Span(view.url, "path"),))] if title and title != view.url else []
    return Draft(view.card, title or view.url, rows, joined(code, _TRUNCATED if view.truncated else None))


def _search_rows(view: WebSearchResult) -> Iterator[Row]:
    if view.answer is not None:
        yield from text_rows(view.answer, prose=True)
    digits = len(str(len(view.sources)))
    for number, source in enumerate(view.sources, start=1):
        yield from _source_rows(source, f"{number:>{digits}} ")


def _source_rows(source: WebSource, number: str) -> Iterator[Row]:
    indent = (Span(" " * len(number)),)
    heading = Span(source.title or source.url, "title" if source.title else "path")
    date = () if source.published_at is None else (Span(f" · {source.published_at}", "note"),)
    yield Row((heading, *date), (Span(number, "number"),), prose=True)
    if source.title:
        yield Row((Span(source.url, "path"),), indent)
    if source.snippet is not None:
        yield from text_rows(source.snippet, indent=indent[0].text, prose=True)
