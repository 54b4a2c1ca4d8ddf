"""Draw the graph of a host: as text, as JSON, or into an SVG file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dsh_runtime.cli.errors import SUCCESS, CliError

if TYPE_CHECKING:
    from dsh_runtime.cli.options import Options
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.plugins.graph import Graph


async def draw(options: Options, output: Output, svg: str | None) -> int:
    """Compose the host, and draw it."""
    from dsh_runtime.cli.plugins.graph import graph_of
    from dsh_runtime.cli.session import open_session

    if svg is not None:
        _check_name(svg)
    async with open_session(options, strict=False) as host:
        graph = graph_of(host)
    if svg is not None:
        _write(Path(svg), graph)
    if output.is_json:
        output.document(graph.document())
    elif svg is None:
        _show(output, graph)
    else:
        output.line(("drawn", "bold green"), f": {svg}")
    return SUCCESS


def _check_name(svg: str) -> None:
    if Path(svg).suffix.lower() != ".svg":
        raise CliError(f"--svg writes over what is there, so it takes names that end in .svg; got '{svg}'")


def _write(file: Path, graph: Graph) -> None:
    from dsh_runtime.cli.plugins.graph_svg import svg_of

    try:
        file.write_text(svg_of(graph), "utf-8", newline="\n")
    except OSError as error:
        raise CliError(f"'{file}' cannot be written: {error.strerror or error}; name another file") from error


def _show(output: Output, graph: Graph) -> None:
    from dsh_runtime.cli.plugins.graph_text import text_lines

    for line in text_lines(graph):
        output.line(*line)
