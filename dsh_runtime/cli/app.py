"""The group of commands; a command's module is imported when the command is used."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

import click

from dsh_runtime import __version__
from dsh_runtime.cli.errors import USAGE, CliError, complain, error_document, error_lines, exit_code
from dsh_runtime.cli.options import COMPLETION_VARIABLE, PROGRAM, common_options, examples
from dsh_runtime.cli.output import Output

COMMANDS: Final = {
    "demo": "dsh_runtime.cli.demo.command",
    "call": "dsh_runtime.cli.call",
    "exec": "dsh_runtime.cli.programs",
    "tools": "dsh_runtime.cli.tools",
    "plugins": "dsh_runtime.cli.plugins.command",
    "check": "dsh_runtime.cli.check",
    "doctor": "dsh_runtime.cli.doctor.command",
    "config": "dsh_runtime.cli.config",
    "new": "dsh_runtime.cli.new.command",
    "dev": "dsh_runtime.cli.dev.command",
    "mcp": "dsh_runtime.cli.mcp",
    "log": "dsh_runtime.cli.record.log",
    "explain": "dsh_runtime.cli.record.explain",
    "replay": "dsh_runtime.cli.record.replay",
    "completion": "dsh_runtime.cli.completion",
}
"""The commands in the order of the help, and the modules whose ``command`` they are."""


_OWN_STDOUT: Final = ("mcp", "completion")
"""The commands whose stdout holds something else, whatever is asked for."""


class LazyGroup(click.Group):
    """Knows its commands by name alone."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in their order, then those of installed wheels."""
        from dsh_runtime.cli.contributed import contributed_names

        return [*COMMANDS, *(name for name in contributed_names() if name not in COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            from dsh_runtime.cli.contributed import contributed_command

            return contributed_command(cmd_name)
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that ``args`` begin with."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            self._check_known(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _check_known(self, ctx: click.Context, name: str) -> None:
        names = self.list_commands(ctx)
        if name not in names:
            from dsh_runtime.loader.errors import did_you_mean, quoted

            raise CliError(f"{PROGRAM} has no command {quoted(name)}; {did_you_mean(name, names)}")


@click.group(
    PROGRAM,
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "dsh-run demo",
        "dsh-run call greet name=Ada",
        "dsh-run tools --output json",
        "dsh-run -c ./staging.toml check",
    )
    + "\n\n\b\nExit codes:\n"
    "  0  success\n"
    "  1  the tool failed, or was not allowed to run\n"
    "  2  the command line, the config or a plugin has to be changed\n"
    "  130  interrupted (143 by SIGTERM, 141 if nobody reads the output any more)",
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@common_options
@click.pass_context
def cli(context: click.Context) -> int | None:
    """Host the tools of AI agents behind one governed pipeline."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        return USAGE
    return None


def run(args: list[str]) -> int:
    """Run the command line; give back the exit code."""
    if os.environ.get(COMPLETION_VARIABLE):
        cli.main(args, prog_name=PROGRAM, complete_var=COMPLETION_VARIABLE)
    written, wants_json = Output.documents, _wants_json(args)  # click uses up the words
    try:
        with cli.make_context(PROGRAM, args) as context:
            code: int | None = cli.invoke(context)
            return code or 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.ClickException as error:
        if wants_json and Output.documents == written:
            Output("json").document(error_document(error))
        else:
            for line in error_lines(error):
                complain(line)
        return exit_code(error)


def _wants_json(args: list[str]) -> bool:
    """Whether a program reads stdout; read off the words, since the error may be that they cannot be parsed."""
    words = args[: args.index("--")] if "--" in args else args
    if next((word for word in words if word in COMMANDS), None) in _OWN_STDOUT:
        return False
    wanted = None
    for word, following in zip(words, [*words, ""][1:], strict=True):
        if word in ("-o", "--output"):
            wanted = following
        elif word.startswith(("-o", "--output=")):
            wanted = word.removeprefix("--output=").removeprefix("-o")
    return wanted == "json"
