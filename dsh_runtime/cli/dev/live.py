"""The board on one screen, drawn anew whenever something happens. What plugins print and log goes on above it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from dsh_runtime.cli.dev.board import Board, Line, Shown
from dsh_runtime.cli.dev.calls import Outcome
from dsh_runtime.cli.dev.plain import STYLES
from dsh_runtime.cli.output import Output
from dsh_runtime.cli.text import shortened, visible

_MAX_TEXT: Final = 1_000
_FEW: Final = 4
_STATES: Final = {"active": "green", "failed": "red", "not loaded": "red"}


class LiveView:
    """Draws the board."""

    def __init__(self, output: Output, board: Board) -> None:
        self._board = board
        self._console = output.console
        self._changes: list[tuple[str, Line]] = []
        self._live = Live(console=output.console, auto_refresh=False, vertical_overflow="ellipsis")

    def __enter__(self) -> LiveView:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, lines: Iterable[Line]) -> None:
        """Draw what has happened into the board."""
        now = time.strftime("%H:%M:%S")
        self._changes = [*self._changes, *((now, line) for line in lines)][-(self._board.changes.maxlen or 0) :]
        self._draw()

    def result(self, outcome: Outcome, lines: Iterable[Line]) -> None:
        """Draw what came of a call in its place."""
        self._draw()

    def _draw(self) -> None:
        self._live.update(Group(*self._parts()), refresh=True)

    def _parts(self) -> Iterator[RenderableType]:
        yield _rule("plugins")
        shown, hidden = fitting(self._board.plugins(), max(_FEW, self._console.size.height // 3))
        yield _plugins(shown)
        if hidden:
            yield Text(f"  and {hidden} more", "dim")
        if self._board.outcomes:
            yield _rule("calls")
            yield from map(_outcome, self._board.outcomes.values())
        if self._board.errors:
            yield _rule("errors", "bold red")
            for texts in self._board.errors.values():
                yield from (_text(text, "red") for text in texts)
        yield _rule("changes")
        for when, line in reversed(self._changes):  # What does not fit on the screen are the oldest.
            yield Text.assemble((f"{when}  ", "dim"), _text(line.text, STYLES[line.mark]))
        yield Text("Ctrl-C ends", "dim")


def fitting(plugins: list[Shown], room: int) -> tuple[list[Shown], int]:
    """The plugins that are shown where the screen has not room for all, in their order, and how many are not.

    Those come first that are worked on or not active; calls and errors stand below them, and are to be seen.
    """
    if len(plugins) <= room:
        return plugins, 0
    first = sorted(plugins, key=lambda one: (not one.worked_on, one.state == "active"))[: room - 1]
    return [one for one in plugins if one in first], len(plugins) - len(first)


def _rule(title: str, style: str = "bold") -> Rule:
    return Rule(Text(title, style), align="left", style="dim")


def _plugins(shown: list[Shown]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for one in shown:
        mark = "*" if one.worked_on else " "
        reloads = f"{one.reloads} reloads" if one.reloads != 1 else "1 reload"
        grid.add_row(
            Text.assemble(mark, (visible(one.id), "bold cyan")),
            Text(one.state, _STATES.get(one.state, "yellow")),
            _text(", ".join(one.tools)),
            Text(reloads if one.reloads else "", "dim"),
        )
    return grid


def _outcome(outcome: Outcome) -> Text:
    took = (f"  {outcome.milliseconds:.1f} ms", "dim")
    return Text.assemble(_text(outcome.call.text, "bold"), took, "\n", _text(outcome.text, "" if outcome.ok else "red"))


def _text(text: str, style: str = "") -> Text:
    return Text(visible(shortened(text, _MAX_TEXT)), style)
