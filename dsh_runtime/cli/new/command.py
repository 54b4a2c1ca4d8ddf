"""``dsh-run new``: begin a plugin."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from dsh_runtime.cli.errors import SUCCESS, CliError
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.new.project import Kind, NewFile

_KINDS = ("tool", "policy", "service")  # as in ``project``, which is imported when it is used


@click.command(
    "new",
    short_help="Begin a plugin: a project with code, tests and a config to run it.",
    epilog=examples("dsh-run new word-count", "dsh-run new office-hours --kind policy"),
)
@click.argument("name")
@click.option("--kind", type=click.Choice(_KINDS), default="tool", help="What the plugin is.  [default: tool]")
@click.option(
    "--in",
    "parent",
    type=click.Path(file_okay=False),
    default=".",
    help="The folder in which the project's own folder is made.  [default: this one]",
)
@common_options
@pass_options
def command(options: Options, name: str, kind: str, parent: str) -> int:
    """Write the project of a new plugin NAME into a folder of that name.

    It holds a package with typed code, an entry point by which a config finds it, tests that pass, a config to run it
    with, and a README. Nothing that exists is touched; if there is something of that name, nothing is written.
    """
    from dsh_runtime.cli.new.project import project_files
    from dsh_runtime.cli.output import Output

    _check(name)
    folder = Path(parent) / name
    project = project_files(name, cast("Kind", kind))
    _write(folder, project)
    _tell(Output(options.output), _report(name, kind, folder, project))
    return SUCCESS


def _check(name: str) -> None:
    from dsh_runtime.cli.new.names import BadNameError, check_name, taken_here

    try:
        check_name(name, taken_here(name))
    except BadNameError as error:
        raise CliError(str(error)) from error


def _write(folder: Path, project: list[NewFile]) -> None:
    from dsh_runtime.cli.new.project import ProjectExistsError, write_project

    try:
        write_project(folder, project)
    except ProjectExistsError:
        raise CliError(f"'{folder}' exists already, and is left as it is; take another name, or move it away") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CliError(f"'{folder}' cannot be written: {reason}; name a folder that can be with --in") from error


def _report(name: str, kind: str, folder: Path, project: list[NewFile]) -> dict[str, Any]:
    return {"name": name, "kind": kind, "folder": str(folder), "files": [file.path for file in project]}


def _tell(output: Any, report: dict[str, Any]) -> None:
    if output.is_json:
        output.document(report)
        return
    output.line(("created", "bold green"), f" {report['folder']}: a {report['kind']}, to begin with")
    for file in report["files"]:
        output.line(("  " + file, "dim"))
    output.line(("next:", "bold"))
    for line in (f"cd {_shell(report['folder'])}", 'pip install -e ".[test]"', "pytest", "dsh-run check"):
        output.line("  ", (line, "cyan"))


def _shell(folder: str) -> str:
    import shlex

    return folder if os.name == "nt" else shlex.quote(folder)
