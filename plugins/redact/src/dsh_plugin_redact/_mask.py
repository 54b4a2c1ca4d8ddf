"""The mask that takes a secret's place: it keeps the kind and nothing of the secret."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

#: What a kind looks like; masks are recognised by it.
KIND: Final = r"[a-z][a-z0-9-]{0,95}"


class Span(NamedTuple):
    """A stretch of a text that is to be masked. ``rank`` settles whose kind is shown: the lowest wins."""

    start: int
    end: int
    kind: str
    rank: int = 0


def mask(kind: str) -> str:
    """What stands in place of a secret."""
    return f"[redacted: {kind}]"


@cache
def mask_pattern() -> re.Pattern[str]:
    """Matches one mask."""
    return re.compile(rf"\[redacted: {KIND}\]")


def is_mask(text: str) -> bool:
    """Whether a text is a mask and nothing else."""
    return text.startswith("[redacted: ") and mask_pattern().fullmatch(text) is not None


def put_masks(text: str, spans: Iterable[Span]) -> str:
    """``text`` with every span masked; the very same text if there is none that is not masked already."""
    merged = list(_merged(_outside_masks(text, spans)))
    if not merged:
        return text
    parts: list[str] = []
    position = 0
    for span in merged:
        parts += (text[position : span.start], mask(span.kind))
        position = span.end
    parts.append(text[position:])
    return "".join(parts)


def _outside_masks(text: str, spans: Iterable[Span]) -> list[Span]:
    """The spans in order, without those that lie within a mask; one that cuts into a mask takes in all of it."""
    found = sorted(spans)
    if not found or "[redacted: " not in text:
        return found
    masks = [match.span() for match in mask_pattern().finditer(text)]
    kept, first = [], 0
    for span in found:
        while first < len(masks) and masks[first][1] <= span.start:
            first += 1
        start, end = _widened(span, masks, first)
        if (start, end) not in masks[first : first + 1]:
            kept.append(span._replace(start=start, end=end))
    return kept


def _widened(span: Span, masks: list[tuple[int, int]], first: int) -> tuple[int, int]:
    start, end = span.start, span.end
    index = first
    while index < len(masks) and masks[index][0] < end:
        start, end = min(start, masks[index][0]), max(end, masks[index][1])
        index += 1
    return start, end


def _merged(spans: Iterable[Span]) -> Iterator[Span]:
    """Overlapping spans as one, which shows the kind of the lowest rank, and of those the widest."""
    whole: Span | None = None
    shown: Span | None = None
    for span in sorted(spans):
        if whole is None or shown is None or span.start >= whole.end:
            if whole is not None:
                yield whole
            whole = shown = span
            continue
        if (-shown.rank, shown.end - shown.start) < (-span.rank, span.end - span.start):
            shown = span
        whole = Span(whole.start, max(whole.end, span.end), shown.kind)
    if whole is not None:
        yield whole
