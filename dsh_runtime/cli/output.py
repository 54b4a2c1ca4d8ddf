"""Where a command's output goes, and how it looks: rich on a terminal, plain elsewhere, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TextIO, TypeAlias

from dsh_runtime.cli.text import Part, columns, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Look: TypeAlias = Literal["rich", "plain", "json"]
_LOOKS: Final[tuple[Look, ...]] = ("rich", "plain", "json")


class Output:
    """Writes to the stdout of the moment when it was made, wherever ``sys.stdout`` leads later."""

    documents: ClassVar[int] = 0
    """How many documents were written in this process."""

    def __init__(self, wanted: str = "auto") -> None:
        self._stream: TextIO | None = sys.stdout
        self.look = _look(wanted, self._stream)
        self._made: Console | None = None

    @property
    def is_json(self) -> bool:
        """Whether a program reads along."""
        return self.look == "json"

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads along."""
        return _is_terminal(self._stream)

    def line(self, *parts: Part) -> None:
        """Write one line for people."""
        if self.look == "rich":
            from rich.text import Text

            self.show(Text.assemble(*map(_safe, parts)), wrap=False)
        else:
            self._write("".join(visible(part if isinstance(part, str) else part[0]) for part in parts) + "\n")

    def hanging(self, head: Sequence[Part], rest: Sequence[Part]) -> None:
        """Write one line whose rest, where it is too long for a terminal, goes on below itself."""
        if self.look == "rich":
            from dsh_runtime.cli.looks import hanging

            self.show(hanging([*map(_safe, head)], [*map(_safe, rest)]))
        else:
            self.line(*head, *rest)

    def text(self, text: str) -> None:
        """Write a tool's own text as it is; made safe where it goes to a terminal."""
        if text and not text.endswith("\n"):
            text += "\n"
        self._write(visible(text) if _is_terminal(self._stream) else text)

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Write rows below a header."""
        if self.look == "rich":
            from dsh_runtime.cli.looks import table

            self.show(table(header, rows))
        else:
            cells = [[title.upper() for title in header], *([visible(cell) for cell in row] for row in rows)]
            self._write("".join(f"{line}\n" for line in columns(cells)))

    def document(self, document: Any) -> None:
        """Write one JSON document: on one line, unless it goes to a terminal."""
        Output.documents += 1
        indent = 2 if _is_terminal(self._stream) else None
        unicode = "utf" in (getattr(self._stream, "encoding", None) or "utf-8").lower()
        self._write(json.dumps(document, indent=indent, ensure_ascii=not unicode or indent is not None) + "\n")

    def show(self, renderable: RenderableType, *, wrap: bool = True) -> None:
        """Print something of rich's; without ``wrap``, the terminal breaks long lines and copies them whole."""
        with self.console.capture() as captured:
            self.console.print(renderable, soft_wrap=not wrap)
        self._write(captured.get())

    def status(self, line: str) -> None:
        """Write a line in whose place the next one comes; an empty one leaves nothing. On a terminal only."""
        if self.look == "rich" and _is_terminal(self._stream):
            self._write(f"\r\x1b[2K{line}")

    @property
    def width(self) -> int:
        """The columns of the terminal."""
        return self.console.width

    @property
    def console(self) -> Console:
        """What draws on the terminal."""
        if self._made is None:
            from rich.console import Console

            self._made = Console(file=self._stream, highlight=False, markup=False, emoji=False)
        return self._made

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._stream.flush()


def _look(wanted: str, stream: TextIO | None) -> Look:
    for look in _LOOKS:
        if wanted == look:
            return look
    return "rich" if _is_terminal(stream) and os.environ.get("TERM") != "dumb" else "plain"


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it has been closed
        return False


def _safe(part: Part) -> Part:
    return visible(part) if isinstance(part, str) else (visible(part[0]), part[1])
