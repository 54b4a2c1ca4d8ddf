"""``dsh-run completion``: the script that completes our commands in a shell."""

from __future__ import annotations

import click

from dsh_runtime.cli.errors import SUCCESS
from dsh_runtime.cli.options import COMPLETION_VARIABLE, PROGRAM, examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    short_help="Print the script for completion in a shell.",
    epilog=examples(
        'eval "$(dsh-run completion bash)"    # in ~/.bashrc',
        'eval "$(dsh-run completion zsh)"     # in ~/.zshrc',
        "dsh-run completion fish > ~/.config/fish/completions/dsh-run.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the script that lets SHELL complete commands, options and file names."""
    from click.shell_completion import get_completion_class

    from dsh_runtime.cli.output import Output

    kind = get_completion_class(shell)
    assert kind is not None, "click completes in each of SHELLS"
    Output("plain").text(kind(context.find_root().command, {}, PROGRAM, COMPLETION_VARIABLE).source())
    return SUCCESS
