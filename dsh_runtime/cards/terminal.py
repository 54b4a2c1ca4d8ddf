"""A command: what is going to run; what it printed and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dsh_hookspecs import TerminalCall, TerminalResult

from dsh_runtime.cards.draft import Draft, joined
from dsh_runtime.cards.lines import counted, lines_of, text_rows
from dsh_runtime.cards.model import Bounds, Row, Span, note

PROMPT: Final = "$ "
#: Rows that the card may need beside the output.
_SPARE: Final = 2


def draft_call(view: TerminalCall) -> Draft:
    """A command that is about to run, its folder and what it is for."""
    return Draft(view.card, view.title, _call_rows(view), prompt=PROMPT)


def draft_result(view: TerminalResult, title: str, prompt: str, bounds: Bounds) -> Draft:
    """The beginning and the end of the output (errors stand last as a rule), and the exit status."""
    return Draft(view.card, title, _output_rows(view.output or "", bounds), _status(view), prompt)


def _call_rows(view: TerminalCall) -> Iterator[Row]:
    if view.cwd is not None:
        yield Row((Span("in ", "note"), Span(view.cwd, "path")))
    if view.description is not None:
        yield from text_rows(view.description, "note", prose=True)


def _status(view: TerminalResult) -> tuple[Span, ...]:
    signal = None if view.signal is None else Span(f"ended by {view.signal}", "bad")
    exit_code = None if view.exit_code is None else Span(f"exit {view.exit_code}", "bad" if view.exit_code else "good")
    return joined(exit_code, signal)


def _output_rows(output: str, bounds: Bounds) -> Iterator[Row]:
    lines = list(lines_of(output))
    half = max(1, (bounds.lines - _SPARE) // 2)
    head = _fitting(lines, half, bounds)
    rest = lines[head:]
    tail = _fitting(rest[::-1], half, bounds)
    yield from _rows(lines[:head])
    if len(rest) > tail:
        yield note(f"… {counted(len(rest) - tail, 'line')} left out …", cut=True)
    yield from _rows(rest[len(rest) - tail :])


def _rows(lines: Sequence[str]) -> Iterator[Row]:
    return (Row((Span(line),)) for line in lines)


def _fitting(lines: Sequence[str], most: int, bounds: Bounds) -> int:
    """How many lines fit into half of the card."""
    left = bounds.bytes // 2
    for number, line in enumerate(lines[:most]):
        left -= len(line[: bounds.columns].encode(errors="replace")) + 1
        if left < 0:
            return number
    return min(len(lines), most)
