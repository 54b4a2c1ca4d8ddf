"""What changed between two texts, as passages with some lines around them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from attrs import frozen

CONTEXT_LINES = 3
#: Pairs of equal lines up to which a line-by-line comparison is worth its time.
_MAX_PAIRS = 20_000


@frozen
class Hunk:
    """One passage that changed: its first line in the new text, what stood there, what stands there now."""

    line: int
    old_text: str | None
    new_text: str


@frozen
class Hunks:
    """The hunks that fit, and how many did not."""

    shown: tuple[Hunk, ...]
    omitted: int = 0


def hunks_between(before: str | None, after: str, max_chars: int) -> Hunks:
    """Return what changed; ``before`` is ``None`` for a new file. Line endings do not count as a change."""
    found = [Hunk(1, None, after)] if before is None else list(_changes(_lines(before), _lines(after)))
    shown: list[Hunk] = []
    for hunk in found:
        max_chars -= len(hunk.old_text or "") + len(hunk.new_text)
        if max_chars < 0:
            break
        shown.append(hunk)
    return Hunks(tuple(shown), len(found) - len(shown))


def _lines(text: str) -> list[str]:
    *whole, rest = text.replace("\r\n", "\n").split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Hunk]:
    for old_from, old_to, new_from, new_to in _with_context(_ranges(old, new), len(old), len(new)):
        yield Hunk(new_from + 1, "".join(old[old_from:old_to]), "".join(new[new_from:new_to]))


def _ranges(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return the ranges of lines that differ. What is equal at both ends is set aside first, in linear time."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    if head == old_end and head == new_end:
        return []
    middle_old, middle_new = old[head:old_end], new[head:new_end]
    if _pairs(middle_old, middle_new) > _MAX_PAIRS:
        return [(head, old_end, head, new_end)]
    codes = SequenceMatcher(None, middle_old, middle_new, autojunk=False).get_opcodes()
    return [(head + a, head + b, head + c, head + d) for tag, a, b, c, d in codes if tag != "equal"]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    for index, (left, right) in enumerate(zip(old, new, strict=False)):
        if left != right:
            return index
    return min(len(old), len(new))


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    others = Counter(new)
    return sum(count * others[line] for line, count in Counter(old).items())


def _with_context(
    ranges: Sequence[tuple[int, int, int, int]], old_size: int, new_size: int
) -> Iterator[tuple[int, int, int, int]]:
    """Widen each range by the lines around it, and join those that then touch."""
    groups: list[list[tuple[int, int, int, int]]] = [[ranges[0]]] if ranges else []
    for last, this in pairwise(ranges):
        if this[0] - last[1] > 2 * CONTEXT_LINES:
            groups.append([])
        groups[-1].append(this)
    for group in groups:
        first, last = group[0], group[-1]
        before = min(CONTEXT_LINES, first[0], first[2])
        after = min(CONTEXT_LINES, old_size - last[1], new_size - last[3])
        yield first[0] - before, last[1] + after, first[2] - before, last[3] + after
