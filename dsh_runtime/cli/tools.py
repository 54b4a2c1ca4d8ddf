"""``dsh-run tools``: what a model could call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dsh_runtime.cli.errors import SUCCESS
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.output import Output


@click.command(
    "tools",
    short_help="List the tools: name, plugin, description.",
    epilog=examples("dsh-run tools", "dsh-run tools --output json | jq '.[].name'"),
)
@common_options
@pass_options
def command(options: Options) -> int:
    """List the tools that the plugins of the config offer.

    As JSON, each comes with the schema of its parameters.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import run

    output = Output(options.output)
    return run(lambda interruption: _tools(options, output))


async def _tools(options: Options, output: Output) -> int:
    from dsh_runtime.cli.session import open_session

    async with open_session(options) as host:
        runtime = host.ctx.tools
        tools = [{**schema, "plugin": runtime.owner(schema["name"])} for schema in runtime.schemas()]
    show_tools(output, tools)
    return SUCCESS


def show_tools(output: Output, tools: list[dict[str, Any]]) -> None:
    """Show tools as rows, or as a list of objects."""
    from dsh_runtime.cli.text import first_line, one_line

    if output.is_json:
        keys = ("name", "plugin", "description", "parameters")
        output.document([{key: tool[key] for key in keys} for tool in tools])
    elif not tools:
        output.line("No plugin of the config offers a tool; add one that does, such as greet.")
    else:
        rows = [(one_line(tool["name"]), one_line(tool["plugin"]), first_line(tool["description"])) for tool in tools]
        output.table(("tool", "plugin", "description"), rows)
