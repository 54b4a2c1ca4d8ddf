"""The options that every command takes, before its name or behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

PROGRAM: Final = "dsh-run"
COMPLETION_VARIABLE: Final = "_DSH_RUN_COMPLETE"
FORMATS: Final = ("auto", "rich", "plain", "json")


class Options:
    """What was asked for; the value behind the command's name counts, if there are two."""

    def __init__(self) -> None:
        self.config: str | None = None
        self.output = "auto"
        self.verbosity = 0


def common_options(command: F) -> F:
    """Give a command ``--config``, ``--output`` and ``--verbose``."""
    for option in (_VERBOSE, _OUTPUT, _CONFIG):
        command = option(command)
    return command


pass_options = click.make_pass_decorator(Options, ensure=True)


def examples(*lines: str) -> str:
    """The closing part of a command's help."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is not None and parameter.name is not None:
        setattr(context.ensure_object(Options), parameter.name, value)


def _remember_verbosity(context: click.Context, parameter: click.Parameter, value: int) -> None:
    context.ensure_object(Options).verbosity += value


_CONFIG = click.option(
    "-c",
    "--config",
    type=click.Path(dir_okay=False),
    expose_value=False,
    callback=_remember,
    help="The config file.  [default: ./dsh.toml, or the one in your config directory]",
)
_OUTPUT = click.option(
    "-o",
    "--output",
    type=click.Choice(FORMATS),
    expose_value=False,
    callback=_remember,
    help="How to show what comes out.  [default: auto, rich on a terminal and plain elsewhere]",
)
_VERBOSE = click.option(
    "-v",
    "--verbose",
    "verbosity",
    count=True,
    expose_value=False,
    callback=_remember_verbosity,
    help="Log more on stderr, with tracebacks; twice for everything.",
)
