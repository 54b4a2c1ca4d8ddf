"""``dsh-run dev``: run the plugins of the config, and the one that is worked on, and reload what is saved."""

from __future__ import annotations

from pathlib import Path

import click

from dsh_runtime.cli.errors import INTERRUPTED, SUCCESS, CliError
from dsh_runtime.cli.options import Options, common_options, examples, pass_options


@click.command(
    "dev",
    short_help="Work on a plugin: run it, reload it when it is saved, repeat a call.",
    epilog=examples(
        "dsh-run dev",
        "dsh-run dev ./notes.py --call 'remember text=hello'",
        "dsh-run dev ./word-count --call 'word_count text=\"one two\"'",
        "dsh-run -c ./staging.toml dev my-installed-plugin",
    ),
)
@click.argument("path", required=False)
@click.option(
    "--call", "calls", metavar="'NAME KEY=VALUE ...'", multiple=True, help="A call to repeat after every reload."
)
@common_options
@pass_options
def command(options: Options, path: str | None, calls: tuple[str, ...]) -> int:
    """Run the plugins of the config and the plugin at PATH, and reload each when its files are saved.

    PATH is a Python file, a folder (a project with an entry point, a package, or one that holds a single plugin), or
    the name of an installed plugin. A row of the config that loads the same plugin gives it its config and its place.
    Without PATH, it is the project in the current folder, if there is one.

    A version that cannot be loaded is told with its file and line, while the one that ran goes on; the next good save
    is taken. Edits of the config are taken up, too. Ctrl-C ends.
    """
    from dsh_runtime.cli.dev.calls import read_calls
    from dsh_runtime.cli.dev.target import find_target
    from dsh_runtime.cli.dev.working import work
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.running import RunInterruptedError, run
    from dsh_runtime.loader.autoreload.watcher import WatchfilesMissingError, load_notify

    try:
        load_notify()
    except WatchfilesMissingError as error:
        raise CliError(str(error)) from error
    target, wanted, output = find_target(path, here=Path.cwd()), read_calls(calls), Output(options.output)
    try:
        run(lambda interruption: work(interruption, options, output, target, wanted))
    except RunInterruptedError as end:
        if end.code != INTERRUPTED:
            raise
    return SUCCESS
