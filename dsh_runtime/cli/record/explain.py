"""``dsh-run explain``: who decided what about a call, afterwards or beforehand."""

from __future__ import annotations

import click

from dsh_runtime.cli.errors import SUCCESS, CliError
from dsh_runtime.cli.options import Options, common_options, examples, pass_options
from dsh_runtime.cli.record.source import find_log, log_option, reading


@click.command(
    "explain",
    short_help="Tell who decided what about a call.",
    epilog=examples(
        "dsh-run explain cli-569959ae2db2",
        "dsh-run explain cli-56 --output json",
        "dsh-run explain --would fs_write path=notes.txt content=hello",
    ),
)
@click.argument("words", metavar="CALL | KEY=VALUE...", nargs=-1)
@click.option("--would", metavar="NAME", help="Say beforehand what policy would decide about a call of this tool.")
@click.option("--json", "document", metavar="JSON", help="With --would: the arguments as one object; - reads stdin.")
@log_option
@common_options
@pass_options
def command(options: Options, words: tuple[str, ...], would: str | None, document: str | None, file: str | None) -> int:
    """Tell the story of a call: which plugin was asked at which stage, what it said, how long it took, what came of it.

    CALL is the id of a call on record, or a beginning of it that no other has; 'dsh-run log calls' lists them. The
    story comes from the log alone.

    With --would, the plugins of the config are asked about a call that is not made: nobody has to allow it, no body
    runs and nothing goes on record. The exit code is 1 if it would be refused.
    """
    if would is not None:
        from dsh_runtime.cli.record.foresee import foresee

        return foresee(options, would, words, document)
    if len(words) != 1 or document is not None:
        raise CliError("explain takes the id of one call; 'dsh-run log calls' lists them, --would NAME asks beforehand")
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.record.story import tell
    from dsh_runtime.cli.record.telling import Teller

    with reading(find_log(options, file)) as reader:
        told = tell(reader, reader.find_call(words[0]))
    output = Output(options.output)
    output.document(told.document()) if output.is_json else Teller(output).story(told)
    return SUCCESS
