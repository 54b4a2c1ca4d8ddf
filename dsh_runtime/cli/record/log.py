"""``dsh-run log``: what is on record."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from dsh_runtime.cli.errors import SUCCESS, CliError
from dsh_runtime.cli.options import Options, common_options, examples, pass_options
from dsh_runtime.cli.record.source import find_log, log_option, reading, telling_trouble

if TYPE_CHECKING:
    from pathlib import Path

    from dsh_runtime.cli.output import Output
    from dsh_runtime.services.sessions.reading import CallFilter

OUTCOMES: Final = ("success", "failure", "interrupted", "open")
_HOST: Final = "host"
_FOLLOWED: Final = 10
_LISTED: Final = 100
_LINES: Final = 500


@click.group(
    "log",
    short_help="Look at what is on record: sessions and calls.",
    invoke_without_command=True,
    epilog=examples(
        "dsh-run log",
        "dsh-run log calls --tool fs_write --since 2h",
        "dsh-run log --follow",
        "dsh-run log export > log.jsonl",
        "dsh-run log prune --older-than 30d --max-size 1GB",
    ),
)
@click.option("--all", "everything", is_flag=True, help="List the sessions of processes, too.")
@click.option("--limit", type=click.IntRange(min=1), help=f"List at most so many.  [default: {_LISTED}]")
@click.option("-f", "--follow", is_flag=True, help="Show calls as they end, as 'log calls --follow' does.")
@log_option
@common_options
@pass_options
@click.pass_context
def command(
    context: click.Context, options: Options, everything: bool, limit: int | None, follow: bool, file: str | None
) -> int | None:
    """List the sessions, the newest first; 'log calls' lists calls. Reading works while other processes write."""
    if context.invoked_subcommand is not None:
        return None
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.record.listing import show_sessions

    if follow:
        context.invoke(calls, limit=limit, follow=True, file=file)
        return SUCCESS
    with reading(find_log(options, file)) as reader:
        sessions = reader.sessions(limit=limit or _LISTED, without_idle=None if everything else _HOST)
    show_sessions(Output(options.output), sessions)
    return SUCCESS


@command.command(
    "calls",
    short_help="List calls, or follow them.",
    epilog=examples("dsh-run log calls --outcome failure", "dsh-run log calls --code DENIED --output json"),
)
@click.option("--session", help="Only those of a session: its id, or a beginning of it.")
@click.option("--tool", help="Only those of a tool.")
@click.option("--outcome", type=click.Choice(OUTCOMES), help="Only those that ended so.")
@click.option("--code", help="Only those that failed with this code.")
@click.option("--since", help="Only those since then: an age (30m, 7d) or a time (2026-01-31T12:00).")
@click.option("--limit", type=click.IntRange(min=1), help=f"At most so many.  [default: {_LISTED}]")
@click.option("-f", "--follow", is_flag=True, help="Go on with every call that ends, until interrupted.")
@log_option
@common_options
@pass_options
def calls(
    options: Options,
    session: str | None,
    tool: str | None,
    outcome: str | None,
    code: str | None,
    since: str | None,
    limit: int | None,
    follow: bool,
    file: str | None,
) -> int:
    """List calls, the newest first; with --follow the newest last, and every further one when it ends."""
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.record.listing import show_calls
    from dsh_runtime.cli.record.units import now_ms, parse_since
    from dsh_runtime.services.sessions.reading import CallFilter

    output, path = Output(options.output), find_log(options, file)
    moment = None if since is None else parse_since(since, now_ms())
    most = limit or (_FOLLOWED if follow else _LISTED)
    with reading(path) as reader:
        whole = None if session is None else reader.session(session).id
        wanted = CallFilter(session=whole, tool=tool, outcome=outcome, code=code, since=moment, limit=most)
        found = [] if follow else reader.calls(wanted)
    if follow:
        _follow(output, path, wanted)
    else:
        show_calls(output, found)
    return SUCCESS


def _follow(output: Output, path: Path, wanted: CallFilter) -> None:
    from dsh_runtime.cli.record.follow import follow_calls
    from dsh_runtime.cli.running import run

    run(lambda interruption: follow_calls(output, path, wanted))


@command.command(
    "export",
    short_help="Write every event as a line of JSON.",
    epilog=examples("dsh-run log export > log.jsonl", "dsh-run log export --session 20260131-120000-1f3a9c07"),
)
@click.option("--session", help="Only those of a session: its id, or a beginning of it.")
@log_option
@common_options
@pass_options
def export(options: Options, session: str | None, file: str | None) -> int:
    """Write the events of the log as lines of JSON, in the order in which they were committed."""
    from dsh_runtime.cli.output import Output

    output = Output(options.output)
    with reading(find_log(options, file)) as reader:
        whole = None if session is None else reader.session(session).id
        _write_lines(output, reader.export(session=whole))
    return SUCCESS


def _write_lines(output: Output, lines: Iterator[str]) -> None:
    while some := list(islice(lines, _LINES)):
        output.text("\n".join(some))


@command.command(
    "prune",
    short_help="Delete old sessions, never an open one.",
    epilog=examples("dsh-run log prune --older-than 30d", "dsh-run log prune --max-size 1GB --vacuum"),
)
@click.option("--older-than", metavar="AGE", help="Delete closed sessions that ended before: 12h, 30d, 8w.")
@click.option("--max-size", metavar="SIZE", help="Delete the oldest closed sessions while the log is larger.")
@click.option("--vacuum", is_flag=True, help="Give the freed room back to the disk; nobody may be writing.")
@log_option
@common_options
@pass_options
def prune(options: Options, older_than: str | None, max_size: str | None, vacuum: bool, file: str | None) -> int:
    """Delete closed sessions, the oldest first, by age and by size. That it was done stands in the log."""
    from dsh_runtime.cli.output import Output
    from dsh_runtime.cli.record.units import now_ms, parse_age, parse_size

    if older_than is None and max_size is None:
        raise CliError("log prune is not told what to delete; give --older-than 30d, --max-size 1GB or both")
    before = None if older_than is None else now_ms() - parse_age(older_than, "--older-than")
    most = None if max_size is None else parse_size(max_size, "--max-size")
    output, path = Output(options.output), find_log(options, file)
    with telling_trouble():
        from dsh_runtime.services.sessions.prune import prune_log

        _show_pruned(output, prune_log(path, before=before, max_bytes=most, vacuum=vacuum))
    return SUCCESS


def _show_pruned(output: Output, pruned: Any) -> None:
    from attrs import asdict

    from dsh_runtime.cli.record.units import size
    from dsh_runtime.cli.text import counted

    if output.is_json:
        output.document(asdict(pruned))
    else:
        deleted = f"{counted(pruned.sessions, 'session')} with {counted(pruned.events, 'event')}"
        output.line(f"Deleted {deleted}; the log holds {size(pruned.bytes)} now.")
