"""The board as lines, where no terminal is: plain ones for people, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Final, Protocol

from dsh_runtime.cli.dev.board import Board, Line, Mark
from dsh_runtime.cli.dev.calls import Outcome
from dsh_runtime.cli.output import Output

STYLES: Final[dict[Mark, str]] = {
    "up": "green",
    "change": "bold green",
    "error": "bold red",
    "note": "dim",
    "result": "",
}


class View(Protocol):
    """Shows what happens, for the body of a ``with``."""

    def __enter__(self) -> View: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, lines: Iterable[Line]) -> None:
        """Show what has happened."""

    def result(self, outcome: Outcome, lines: Iterable[Line]) -> None:
        """Show what came of a call."""


class PlainView:
    """Writes a line for each thing that happens."""

    def __init__(self, output: Output, board: Board) -> None:
        self._output = output

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to take down."""

    def show(self, lines: Iterable[Line]) -> None:
        """Write the lines, what is wrong told apart."""
        for line in lines:
            self._output.line(("error: " if line.mark == "error" else "", STYLES["error"]), line.text)

    def result(self, outcome: Outcome, lines: Iterable[Line]) -> None:
        """Write what came of a call."""
        self.show(lines)


class JsonView:
    """Writes a document for each thing that happens, one a line."""

    def __init__(self, output: Output, board: Board) -> None:
        self._output = output

    def __enter__(self) -> JsonView:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to take down."""

    def show(self, lines: Iterable[Line]) -> None:
        """Write a document for each line."""
        for line in lines:
            self._output.document({"event": line.mark, "message": line.text})

    def result(self, outcome: Outcome, lines: Iterable[Line]) -> None:
        """Write a document of the call."""
        self._output.document(
            {
                "event": "call",
                "call": outcome.call.text,
                "ok": outcome.ok,
                "message": outcome.text,
                "milliseconds": round(outcome.milliseconds, 3),
            }
        )
