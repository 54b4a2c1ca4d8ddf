"""Files: what changes in them, and windows of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from dsh_hookspecs import DiffCall, DiffResult, FileDiff, ReadResult

from dsh_runtime.cards.content import content_rows
from dsh_runtime.cards.diff import DiffLine, FileChange, Sign, compare
from dsh_runtime.cards.draft import Draft, joined
from dsh_runtime.cards.generic import location_rows
from dsh_runtime.cards.lines import counted
from dsh_runtime.cards.model import Row, Span, Style, note

_STYLES: Final[dict[Sign, Style]] = {"+": "added", "-": "removed", " ": "plain", "~": "note"}


def draft_change(view: DiffCall) -> Draft:
    """A change that is about to be made; locations that no diff names are listed."""
    paths = {diff.path for diff in view.diffs}
    elsewhere = [location for location in view.locations if location.path not in paths]
    changes = _changes(view.diffs)
    return Draft(view.card, view.title, _change_rows(view.diffs, changes, elsewhere), _totals(changes))


def draft_changed(view: DiffResult, title: str) -> Draft:
    """The change that was made."""
    changes = _changes(view.diffs)
    return Draft(view.card, title, _change_rows(view.diffs, changes, ()), _totals(changes))


def draft_window(view: ReadResult, title: str) -> Draft:
    """A window of a file, its lines numbered."""
    return Draft(view.card, title or view.path, _window_rows(view), joined(*_window_facts(view)))


def _changes(diffs: Sequence[FileDiff]) -> list[FileChange]:
    return [compare(diff.old_text, diff.new_text) for diff in diffs]


def _totals(changes: Sequence[FileChange]) -> tuple[Span, ...]:
    added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
    if not added and not removed:
        return (Span("no line changes", "note"),)
    return (Span(f"+{added:,}", "added"), Span(" "), Span(f"-{removed:,}", "removed"))


def _change_rows(diffs: Sequence[FileDiff], changes: Sequence[FileChange], elsewhere: Any) -> Iterator[Row]:
    yield from location_rows(elsewhere)
    last = None
    for diff, change in zip(diffs, changes, strict=True):
        is_new = diff.old_text is None
        if diff.path == last and not is_new:
            yield note("…")  # another passage of the same file
        else:
            yield Row((Span(diff.path, "path"), *([Span(" (new file)", "note")] if is_new else [])))
        last = diff.path
        yield from map(_diff_row, change.lines)


def _diff_row(line: DiffLine) -> Row:
    if line.sign == "~":
        return Row((Span(line.text, "note"),), (Span("… ", "note"),))
    style = _STYLES[line.sign]
    return Row((Span(line.text, style),), (Span(f"{line.sign} ", style),))


def _window_rows(view: ReadResult) -> Iterator[Row]:
    digits = len(str(view.lines[-1].number)) if view.lines else 1
    for line in view.lines:
        yield Row((Span(line.text),), (Span(f"{line.number:>{digits}} ", "number"),))
    if not view.lines:
        yield from content_rows(view.content)


def _window_facts(view: ReadResult) -> Iterator[str | None]:
    yield view.lang
    if view.lines:
        yield f"lines {view.lines[0].number:,} to {view.lines[-1].number:,} of {view.total_lines:,}"
    elif view.content is None:
        yield f"nothing from line {view.offset:,} on; the file has {counted(view.total_lines, 'line')}"
