"""Two texts as the lines that go, come and stay; in bounded time, whatever the texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias

from attrs import frozen

Sign: TypeAlias = Literal["+", "-", " ", "~"]
"""A line that comes, goes or stays, or the note on lines that are left out."""

CONTEXT: Final = 3
#: Pairs of equal lines up to which a line-by-line comparison is worth its time.
_MAX_PAIRS: Final = 20_000
_NO_NEWLINE: Final = "\\ no newline at the end"


@frozen
class DiffLine:
    """One line of a diff; ``omitted`` counts the lines that a note stands for."""

    sign: Sign
    text: str
    omitted: int = 0


@frozen
class FileChange:
    """What happens to one file: its diff, and how many lines come and go."""

    lines: Sequence[DiffLine]
    added: int
    removed: int


def compare(old: str | None, new: str) -> FileChange:
    """Compare two texts; ``None`` is a file that is not there yet."""
    before, after = _lines(old or ""), _lines(new)
    if old is not None and old.endswith("\n") != new.endswith("\n"):
        before += [_NO_NEWLINE] if old and not old.endswith("\n") else []
        after += [_NO_NEWLINE] if new and not new.endswith("\n") else []
    if all(line.endswith("\r") for line in (*before, *after)):
        before, after = [line[:-1] for line in before], [line[:-1] for line in after]
    lines = list(_diff(before, after))
    signs = Counter(line.sign for line in lines if line.text != _NO_NEWLINE)
    return FileChange(list(_shortened(lines)), signs["+"], signs["-"])


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def _diff(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    yield from (DiffLine(" ", line) for line in old[:head])
    yield from _middle(old[head : len(old) - tail], new[head : len(new) - tail])
    yield from (DiffLine(" ", line) for line in old[len(old) - tail :])


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    for index, (left, right) in enumerate(zip(old, new, strict=False)):
        if left != right:
            return index
    return min(len(old), len(new))


def _middle(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    if _pairs(old, new) > _MAX_PAIRS:
        codes = [("replace", 0, len(old), 0, len(new))]
    else:
        codes = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for tag, old_from, old_to, new_from, new_to in codes:
        if tag == "equal":
            yield from (DiffLine(" ", line) for line in old[old_from:old_to])
        else:
            yield from (DiffLine("-", line) for line in old[old_from:old_to])
            yield from (DiffLine("+", line) for line in new[new_from:new_to])


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    others = Counter(new)
    return sum(count * others[line] for line, count in Counter(old).items())


def _shortened(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Leave out what stays, but for some lines around what changes."""
    changed = [index for index, line in enumerate(lines) if line.sign != " "]
    shown = {near for index in changed for near in range(index - CONTEXT, index + CONTEXT + 1)}
    omitted = 0
    for index, line in enumerate(lines):
        if index not in shown:
            omitted += 1
            continue
        yield from _note(omitted)
        omitted = 0
        yield line
    yield from _note(omitted)


def _note(omitted: int) -> Iterator[DiffLine]:
    if omitted:
        yield DiffLine("~", f"{omitted:,} unchanged", omitted)
