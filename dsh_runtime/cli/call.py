"""``dsh-run call``: make one call and show its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dsh_runtime.cli.errors import FAILED, SUCCESS, CliError, complain
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_hookspecs import ToolExecutionResult

    from dsh_runtime.cli.arguments import Pair
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import Interruption
    from dsh_runtime.loader.host import Host


@click.command(
    "call",
    short_help="Make one call and show its result.",
    epilog=examples(
        "dsh-run call greet name=Ada",
        "dsh-run call fs_read path=notes.txt limit=10",
        "dsh-run call search 'tags:=[\"new\"]' filter.year=2024",
        'dsh-run call greet --json \'{"name": "Ada"}\' --output json',
        'echo \'{"name": "Ada"}\' | dsh-run call greet',
    ),
)
@click.argument("name")
@click.argument("arguments", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--json", "document", metavar="JSON", help="The arguments as one JSON object; - reads it from stdin.")
@common_options
@pass_options
def command(options: Options, name: str, arguments: tuple[str, ...], document: str | None) -> int:
    """Make one call of the tool NAME, through every policy that the config names.

    KEY=VALUE is read by the tool's schema: a text stays as it is, anything else is JSON. KEY:=VALUE is always JSON,
    and A.B=VALUE is the member B of A. Single arguments are put into those of --json. Where neither is given,
    the tool has parameters and stdin is a pipe or a file, they are read from there; --json '{}' or </dev/null gives
    none.

    If policy wants the call allowed and the config has nobody to ask, you are asked at the terminal, where there is one
    and the plugin approval-terminal is installed.

    A tool that fails, or may not run, ends with exit code 1 and one line on stderr.
    """
    from dsh_runtime.cli.arguments import read_document, split_pairs
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import run

    pairs = split_pairs(arguments)
    given = read_document(document, bool(pairs))
    output = Output(options.output)
    return run(lambda interruption: _call(interruption, options, output, name, given, pairs))


async def _call(
    interruption: Interruption,
    options: Options,
    output: Output,
    name: str,
    document: dict[str, Any] | None,
    pairs: list[Pair],
) -> int:
    from dsh_runtime.cli.arguments import build_arguments, read_piped
    from dsh_runtime.cli.asking import ask_at_terminal
    from dsh_runtime.cli.session import open_session

    async with open_session(options, record=True) as host:
        parameters = parameters_of(host, name)
        given = await read_piped(parameters) if document is None else document
        arguments = build_arguments(given, pairs, parameters, name)
        await ask_at_terminal(host)
        return await call_and_show(interruption, output, host, name, arguments)


async def call_and_show(interruption: Interruption, output: Output, host: Host, name: str, arguments: Any) -> int:
    """Make a call and show its result; give the exit code."""
    from dsh_runtime.cli.session import call_tool

    if output.look == "rich":
        result = await _call_on_screen(interruption, output, host, name, arguments)
    else:
        result = await call_tool(host, name, arguments, interruption)
        show_result(output, host, name, result)
    return FAILED if result.is_error else SUCCESS


async def _call_on_screen(
    interruption: Interruption, output: Output, host: Host, name: str, arguments: Any
) -> ToolExecutionResult:
    from dsh_runtime.cli.screen import CallScreen, can_be_shown
    from dsh_runtime.cli.session import call_tool

    if not can_be_shown(host, name, arguments):
        result = await call_tool(host, name, arguments, interruption)
        show_result(output, host, name, result)
        return result
    screen = CallScreen(output, host, name, arguments)
    with screen.running():
        result = await call_tool(host, name, arguments, interruption)
    screen.show_result(result)
    return result


def parameters_of(host: Host, name: str) -> Any:
    """The schema of a tool's parameters; the tool has to be there."""
    definition = host.ctx.tools.get(name)
    if definition is None:
        from dsh_runtime.loader.errors import did_you_mean, quoted

        known = [schema["name"] for schema in host.ctx.tools.schemas()]
        hint = did_you_mean(name, known)
        raise CliError(f"no plugin offers a tool {quoted(name)} ('dsh-run tools' lists them); {hint}")
    return definition.parameters


def show_result(output: Output, host: Host, name: str, result: ToolExecutionResult) -> None:
    """Show a result: content on stdout, or what went wrong on stderr; as JSON everything on stdout.

    What a person reads is masked where the host has a redactor; a pipe and a program get the result as it is.
    """
    from dsh_runtime.cli.results import content_text, failure_line, own_feedback, result_document

    if output.is_json:
        output.document(result_document(result))
        return
    redact = host.ctx.get("redact")
    mask = redact.text if redact is not None else str
    if result.is_error:
        complain(mask(failure_line(name, result)))
    text = own_feedback(result) if result.is_error else content_text(result.content)
    output.text(mask(text) if output.is_terminal else text)
