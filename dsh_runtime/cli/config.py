"""``dsh-run config show``: the merged config, and where each value comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from dsh_runtime.cli.errors import SUCCESS
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.output import Output
    from dsh_runtime.loader.show import ShownValue


@click.group("config", short_help="Show the merged config.", epilog=examples("dsh-run config show"))
def command() -> None:
    """Look at the config."""


@command.command(
    "show",
    short_help="Show each value, with the file and line it came from.",
    epilog=examples("dsh-run config show", "dsh-run -c ./staging.toml config show --output json"),
)
@common_options
@pass_options
def show(options: Options) -> int:
    """Show every value of the merged config, with the file and line that it came from; secrets are masked.

    No plugin is loaded. A value without a place is a default.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.session import read_config
    from dsh_runtime.loader.show import show_config

    output = Output(options.output)
    values = show_config(read_config(options))
    if output.is_json:
        output.document(list(map(_document, values)))
    else:
        _show_lines(output, values)
    return SUCCESS


def _show_lines(output: Output, values: list[ShownValue]) -> None:
    from dsh_runtime.loader.errors import format_path

    for value in values:
        place = (f"  # {value.location}" if value.location else "  # default", "dim")
        output.line((format_path(value.path), "cyan"), f" = {value.text}", place)


def _document(value: ShownValue) -> dict[str, Any]:
    from dsh_runtime.loader.errors import format_path

    place = value.location
    return {
        "path": format_path(value.path),
        "value": _json_value(value.text),
        "file": place.file if place else None,
        "line": place.line if place else None,
    }


def _json_value(text: str) -> Any:
    """A shown value as JSON, where it is some."""
    try:
        return json.loads(text)
    except ValueError:
        return text
