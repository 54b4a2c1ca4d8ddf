"""``dsh-run plugins`` and its commands."""

from __future__ import annotations

import click

from dsh_runtime.cli.options import Options, common_options, examples, pass_options


@click.group(
    "plugins",
    short_help="Show the plugins: order, state, version, and why one is not active.",
    invoke_without_command=True,
    epilog=examples("dsh-run plugins", "dsh-run plugins pin", "dsh-run plugins graph --svg host.svg"),
)
@common_options
@pass_options
@click.pass_context
def command(context: click.Context, options: Options) -> int | None:
    """Show the plugins of the config as a tree, in the order in which they are heard.

    Each comes with its state, its wheel and version, and why it is not active, if it is not. The installed wheels
    follow, with their entry points and whether the config uses them.
    """
    if context.invoked_subcommand is not None:
        return None
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.plugins.listing import show_plugins
    from dsh_runtime.cli.running import run

    output = Output(options.output)
    return run(lambda interruption: show_plugins(options, output))


@command.command(
    "pin",
    short_help="Write what the plugins are now into the config.",
    epilog=examples("dsh-run plugins pin", "dsh-run plugins pin gate"),
)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@common_options
@pass_options
def pin(options: Options, ids: tuple[str, ...]) -> int:
    """Write version and digest of every enabled plugin into the table [pins] of the config; the rest of it is kept.

    A host with pins refuses a plugin that is not what was pinned, and one that has no pin. With IDs only those are
    pinned anew. No plugin is loaded. To do without pins, remove the table.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.plugins.pinning import pin_plugins

    return pin_plugins(options, ids, Output(options.output))


@command.command(
    "graph",
    short_help="Draw who needs which service, and who listens where in which order.",
    epilog=examples("dsh-run plugins graph", "dsh-run plugins graph --svg host.svg"),
)
@click.option("--svg", type=click.Path(dir_okay=False), metavar="FILE", help="Draw it into an SVG file instead.")
@common_options
@pass_options
def graph(options: Options, svg: str | None) -> int:
    """Start the plugins of the config, and draw how they hang together: services, listeners, guards, tools.

    Listeners stand in the order in which they are heard, the first one outermost.
    """
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.plugins.drawing import draw
    from dsh_runtime.cli.running import run

    output = Output(options.output)
    return run(lambda interruption: draw(options, output, svg))
