"""What rich draws; imported where something goes to a terminal, and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from dsh_runtime.cli.text import Part, visible


def hanging(head: Sequence[Part], rest: Sequence[Part]) -> Table:
    """A line in two columns, of which the second one wraps."""
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text.assemble(*head), Text.assemble(*rest))
    return grid


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Rows below a header; the first column stands out."""
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for number, title in enumerate(header):
        drawn.add_column(title, style="bold cyan" if number == 0 else "", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(visible(cell)) for cell in row))
    return drawn
