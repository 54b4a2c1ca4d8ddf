"""How a command ends when it cannot do what it was asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from dsh_runtime.cli.text import visible

if TYPE_CHECKING:
    from dsh_runtime.loader.errors import ConfigProblem

SUCCESS: Final = 0
FAILED: Final = 1
"""The tool failed, or was not allowed to run."""
USAGE: Final = 2
"""The command line, the config or a plugin has to be changed."""
INTERRUPTED: Final = 130


class CliError(click.ClickException):
    """Somebody's mistake, told in one line for each problem; anything else that is raised is a bug."""

    def __init__(self, *messages: str, code: int = USAGE) -> None:
        super().__init__("\n".join(messages))
        self.messages: Sequence[str] = messages
        self.code = code


def error_lines(error: click.ClickException) -> list[str]:
    """What to print for an error, one line for each problem."""
    if isinstance(error, CliError):
        return [_on_one_line(message) for message in error.messages]
    message = _on_one_line(error.format_message()).rstrip(".")
    context = getattr(error, "ctx", None)
    return [f"{message}; see '{context.command_path} --help'" if context is not None else message]


def exit_code(error: click.ClickException) -> int:
    """The exit code that an error asks for."""
    return error.code if isinstance(error, CliError) else error.exit_code


def complain(line: str) -> None:
    """Tell an error on stderr."""
    if sys.stderr is not None:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {visible(line)}", err=True)


def note(line: str) -> None:
    """Tell something on stderr that is no error."""
    if sys.stderr is not None:
        click.echo(f"note: {visible(line)}", err=True)


def error_document(error: click.ClickException) -> dict[str, Any]:
    """What a program reads of an error: the place of each problem in the config, where it has one."""
    return {"ok": False, "is_error": True, "exit_code": exit_code(error), "problems": problem_documents(error)}


def problem_documents(error: click.ClickException) -> list[dict[str, Any]]:
    """The problems of an error, one object each."""
    from dsh_runtime.loader.errors import ConfigProblem, LoaderError

    cause = error.__cause__
    if isinstance(cause, LoaderError):
        return [problem_document(problem) for problem in cause.problems]
    return [problem_document(ConfigProblem((), line)) for line in error_lines(error)]


def problem_document(problem: ConfigProblem) -> dict[str, Any]:
    """One problem: what it is, and where in the config."""
    from dsh_runtime.loader.errors import format_path

    place = problem.location
    return {
        "message": problem.message,
        "path": format_path(problem.path) or None,
        "file": place.file if place else None,
        "line": place.line if place else None,
    }


def _on_one_line(message: str) -> str:
    return " ".join(message.split("\n"))
