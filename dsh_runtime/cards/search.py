"""What a search found: lines grouped by file, or paths."""

from __future__ import annotations

from collections.abc import Iterator

from dsh_hookspecs import SearchResult

from dsh_runtime.cards.draft import Draft, joined
from dsh_runtime.cards.lines import counted
from dsh_runtime.cards.model import Row, Span


def draft_found(view: SearchResult, title: str) -> Draft:
    """The matches or paths, and whether those are all."""
    rows = _match_rows(view) if view.shape == "matches" else _path_rows(view)
    return Draft(view.card, title, rows, joined(*_facts(view)))


def _match_rows(view: SearchResult) -> Iterator[Row]:
    for file in view.files:
        yield Row((Span(file.path, "path"),))
        digits = max((len(str(match.line_number)) for match in file.matches), default=1)
        for match in file.matches:
            yield Row((Span(match.line),), (Span(f"  {match.line_number:>{digits}} ", "number"),))


def _path_rows(view: SearchResult) -> Iterator[Row]:
    return (Row((Span(path, "path"),)) for path in view.paths)


def _facts(view: SearchResult) -> Iterator[Span | str | None]:
    matches = view.shape == "matches"
    yield counted(view.total, "match", "matches") if matches else counted(view.total, "path")
    if matches and view.files:
        yield f"in {counted(len(view.files), 'file')}"
    if view.truncated:
        shown = sum(len(file.matches) for file in view.files) if matches else len(view.paths)
        yield Span(f"truncated: the view holds {shown:,}", "warn")
