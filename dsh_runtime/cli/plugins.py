"""``dsh-run plugins``: the tree of plugins, and why one is not active."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from dsh_runtime.cli.errors import SUCCESS
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.survey import PluginNode
    from dsh_runtime.cli.text import Part
    from dsh_runtime.loader.discover import InstalledPlugin


@click.command(
    "plugins",
    short_help="Show the plugins: order, state, version, and why one is not active.",
    epilog=examples("dsh-run plugins", "dsh-run plugins --output json"),
)
@common_options
@pass_options
def command(options: Options) -> int:
    """Show the plugins of the config as a tree, in the order in which they are heard.

    Each comes with its state, its wheel and version, and why it is not active, if it is not. Installed plugins that the
    config does not use follow.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import run

    output = Output(options.output)
    return run(lambda interruption: _plugins(options, output))


async def _plugins(options: Options, output: Output) -> int:
    from dsh_runtime.cli.session import open_session
    from dsh_runtime.cli.survey import survey_installed, survey_plugins

    async with open_session(options, strict=False) as host:
        tree, installed = survey_plugins(host), survey_installed(host)
    if output.is_json:
        output.document(_document(tree, installed))
    else:
        _show(output, tree, installed)
    return SUCCESS


def _document(tree: Sequence[PluginNode], installed: Sequence[InstalledPlugin]) -> dict[str, object]:
    return {
        "plugins": [node.document() for node in tree],
        "installed": [
            {"name": plugin.name, "wheel": plugin.distribution, "version": plugin.version} for plugin in installed
        ],
    }


def _show(output: Output, tree: Sequence[PluginNode], installed: Sequence[InstalledPlugin]) -> None:
    if not tree:
        output.line("The config names no plugin.")
    for line in _tree_lines(tree):
        output.line(*line)
    if installed:
        output.line("")
        output.line(("Installed, not in use:", "bold"))
    width = max((len(plugin.name) for plugin in installed), default=0)
    for plugin in installed:
        output.line("  ", (plugin.name.ljust(width), "cyan"), (f"  {plugin.distribution} {plugin.version}", "dim"))


def _tree_lines(nodes: Sequence[PluginNode], indent: str = "") -> Iterator[list[Part]]:
    """A line for each plugin, with its children and its trouble below it."""
    width = max((len(node.id) for node in nodes), default=0)
    for node in nodes:
        name = (node.id.ljust(width), "bold cyan")
        source = (f"  {node.source}" if node.source else "", "dim")
        yield [f"{indent}{node.order}  ", name, "  ", _styled_state(node.state), source]
        below = indent + " " * (len(node.order) + 2)
        if node.why is not None:
            yield [below, ("why: ", "bold"), node.why]
        yield from _tree_lines(node.children, below)


def _styled_state(state: str) -> Part:
    styles = {"active": "green", "failed": "red", "not loaded": "red", "disabled": "dim"}
    return state, styles.get(state, "yellow")
