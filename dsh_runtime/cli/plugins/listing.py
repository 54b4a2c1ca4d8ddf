"""The tree of plugins, and why one is not active; the wheels that are installed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dsh_runtime.cli.errors import SUCCESS, note
from dsh_runtime.cli.survey import InstalledWheel, PluginNode, survey_installed, survey_plugins, survey_wheels
from dsh_runtime.loader.discover import InstalledPlugin, installed_plugins
from dsh_runtime.loader.errors import ConfigError
from dsh_runtime.loader.find import find_config

if TYPE_CHECKING:
    from dsh_runtime.cli.options import Options
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.text import Part


async def show_plugins(options: Options, output: Output) -> int:
    """Show what the config names and what is installed; without any config, what is installed."""
    from dsh_runtime.cli.session import open_session

    if options.config is None and (missing := _no_config()) is not None:
        note(missing)
        tree, installed, wheels = [], list(installed_plugins()), survey_wheels(())
    else:
        async with open_session(options, strict=False) as host:
            tree, installed = survey_plugins(host), survey_installed(host)
            wheels = survey_wheels(host.config.rows)
        if not tree and not output.is_json:
            output.line("The config names no plugin.")
    if output.is_json:
        output.document(_document(tree, installed, wheels))
    else:
        _show(output, tree, wheels)
    return SUCCESS


def _no_config() -> str | None:
    """What is said where there is no config, and none was asked for."""
    try:
        find_config()
    except ConfigError as error:
        return str(error)
    return None


def _document(
    tree: Sequence[PluginNode], installed: Sequence[InstalledPlugin], wheels: Sequence[InstalledWheel]
) -> dict[str, object]:
    return {
        "plugins": [node.document() for node in tree],
        "installed": [
            {"name": plugin.name, "wheel": plugin.distribution, "version": plugin.version} for plugin in installed
        ],
        "wheels": [wheel.document() for wheel in wheels],
    }


def _show(output: Output, tree: Sequence[PluginNode], wheels: Sequence[InstalledWheel]) -> None:
    for line in _tree_lines(tree):
        output.line(*line)
    if wheels:
        output.line("")
        output.line(("Installed wheels:", "bold"))
    for line in _wheel_lines(wheels):
        output.line(*line)


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


def _wheel_lines(wheels: Sequence[InstalledWheel]) -> Iterator[list[Part]]:
    """A line for each entry point, with its wheel in front of the first."""
    titles = [f"{wheel.name} {wheel.version}" for wheel in wheels]
    widest = max(map(len, titles), default=0)
    longest = max((len(entry.name) for wheel in wheels for entry in wheel.entries), default=0)
    for title, wheel in zip(titles, wheels, strict=True):
        for number, entry in enumerate(wheel.entries):
            name = (entry.name.ljust(longest), "cyan")
            yield ["  ", (title if number == 0 else "").ljust(widest), "  ", name, "  ", _usage(entry.name, entry.ids)]


def _usage(name: str, ids: Sequence[str]) -> Part:
    if not ids:
        return "not enabled", "dim"
    return ("enabled" if list(ids) == [name] else f"enabled as {', '.join(ids)}"), "green"


def _styled_state(state: str) -> Part:
    styles = {"active": "green", "failed": "red", "not loaded": "red", "disabled": "dim"}
    return state, styles.get(state, "yellow")
