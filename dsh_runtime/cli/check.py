"""``dsh-run check``: would this config start?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dsh_runtime.cli.errors import SUCCESS, USAGE, CliError, error_document, problem_document
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.output import Output
    from dsh_runtime.loader.host import Host


@click.command(
    "check",
    short_help="Check the config and its plugins, without a call.",
    epilog=examples("dsh-run check", "dsh-run -c ./staging.toml check", "dsh-run check --output json"),
)
@common_options
@pass_options
def command(options: Options) -> int:
    """Read the config, load its plugins and start them, make no call, and say everything that is wrong.

    Ends with exit code 0 if the host would start, with 2 and one line for each problem if not.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import run

    output = Output(options.output)
    return run(lambda interruption: _check(options, output))


async def _check(options: Options, output: Output) -> int:
    from dsh_runtime.cli.session import open_session

    try:
        async with open_session(options, tells_failures=True, record=True) as host:
            report = _report(host)
    except CliError as error:
        if not output.is_json:
            raise
        output.document(_failed(error))
        return USAGE
    _show(output, report)
    return SUCCESS


def _report(host: Host) -> dict[str, Any]:
    from dsh_runtime.loader.host import why_not_active

    problems = [problem for plugin in host.plugins for problem in why_not_active(plugin)]
    return {
        "ok": True,
        "files": list(host.config.sources),
        "plugins": [plugin.id for plugin in host.plugins if plugin.row is not None],
        "tools": [schema["name"] for schema in host.ctx.tools.schemas()],
        "problems": [],
        "warnings": [problem_document(problem) for problem in problems],
    }


def _failed(error: CliError) -> dict[str, Any]:
    nothing: dict[str, Any] = {"files": [], "plugins": [], "tools": [], "warnings": []}
    return {**error_document(error), **nothing}


def _show(output: Output, report: dict[str, Any]) -> None:
    from dsh_runtime.cli.text import counted

    if output.is_json:
        output.document(report)
        return
    for warning in report["warnings"]:
        output.line(("warning", "yellow"), f": {warning['message']}")
    plugins, tools = counted(len(report["plugins"]), "plugin"), counted(len(report["tools"]), "tool")
    output.line(("ok", "bold green"), f": {', '.join(report['files'])}: {plugins}, {tools}")
