"""Which log a command reads, and how what is wrong with it is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dsh_runtime.cli.errors import CliError
from dsh_runtime.cli.options import Options

if TYPE_CHECKING:
    from dsh_runtime.services.sessions.reading import Reader

F = TypeVar("F", bound=Callable[..., Any])


def log_option(command: F) -> F:
    """Give a command ``--log``."""
    return click.option(
        "--log",
        "file",
        type=click.Path(dir_okay=False),
        help="The file of the log.  [default: the one that the config names, else your own]",
    )(command)


def find_log(options: Options, file: str | None) -> Path:
    """The file that was named, else that of the config, else the user's own."""
    from dsh_runtime.loader.errors import ConfigError
    from dsh_runtime.loader.find import find_config
    from dsh_runtime.loader.load import load_config
    from dsh_runtime.loader.record import log_file

    with telling_trouble():
        if file is not None:
            return Path(file).absolute()
        try:
            config = find_config(options.config)
        except ConfigError:
            if options.config is not None:
                raise
            return log_file(load_config({}))
        return log_file(load_config(config))


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Reader]:
    """A reader of the log, for the body."""
    from dsh_runtime.services.sessions.reading import Reader

    with telling_trouble(), Reader(path) as reader:
        yield reader


@contextlib.contextmanager
def telling_trouble() -> Iterator[None]:
    """Turn what is wrong with the log or the config into one line for each problem."""
    from dsh_hookspecs import HarnessError

    from dsh_runtime.loader.errors import LoaderError

    try:
        yield
    except LoaderError as error:
        raise CliError(*str(error).splitlines()) from error
    except HarnessError as error:
        raise CliError(str(error)) from error
