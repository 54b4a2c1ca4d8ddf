"""``dsh-run gateway``: what remote tools have changed, accepting it, and taking over other clients' servers."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dsh_plugin_mcp_client._fingerprints import Book, Change

_BOOK = click.option(
    "--fingerprints",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file of fingerprints that the config names.  [default: the one in your state folder]",
)


@click.group("gateway", short_help="Accept changed remote tools; import servers of other MCP clients.")
def gateway() -> None:
    """Look after the MCP servers behind this host."""


@gateway.command("status")
@_BOOK
def status(fingerprints: Path | None) -> int:
    """Show every remote tool that has changed since it was accepted, with the difference.

    Exit code 1 if there is one.
    """
    book = _book(fingerprints)
    changes = _changes(book)
    for change in changes:
        _show(change)
    if not changes:
        _say_none(book)
    return 1 if changes else 0


@gateway.command("accept")
@click.argument("tools", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Accept every tool that has changed.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_BOOK
def accept(tools: tuple[str, ...], everything: bool, yes: bool, fingerprints: Path | None) -> int:
    """Accept the present form of changed tools, each SERVER/TOOL or TOOL; the difference is shown first.

    A running host offers them again within a second.
    """
    from dsh_plugin_mcp_client._fingerprints import FingerprintError

    if bool(tools) == everything:
        raise click.UsageError("name the tools to accept, or give --all")
    book = _book(fingerprints)
    changes = _changes(book)
    chosen = changes if everything else _chosen(book, changes, tools)
    for change in chosen:
        _show(change)
    if not chosen:
        _say_none(book)
        return 0
    if not yes and not click.confirm(f"Accept {_counted(len(chosen))}?"):
        return 1
    try:
        book.accept(chosen)
    except FingerprintError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Accepted {_counted(len(chosen))}.")
    return 0


@gateway.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--into",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("dsh.toml"),
    show_default=True,
    help="The config file that gets the rows; it is made if it is not there.",
)
@click.option("--dry-run", is_flag=True, help="Print the rows and write nothing.")
def import_servers(file: Path, into: Path, dry_run: bool) -> int:
    """Write a row for every server of the mcpServers block that desktop and editor clients use.

    What looks like a secret stays out of the config: a variable of the environment stands in its place.
    """
    from dsh_plugin_mcp_client._import import ImportProblemError, add_rows, rows_of

    try:
        rows, notes = rows_of(file, into)
        text = add_rows(rows, None if dry_run else into)
    except ImportProblemError as error:
        raise click.ClickException(str(error)) from error
    if dry_run:
        click.echo(text, nl=False)
    else:
        click.echo(
            f"Added {len(rows)} {'row' if len(rows) == 1 else 'rows'} to {into}: {', '.join(row.id for row in rows)}."
        )
    for note in notes:
        click.echo(note, err=True)
    return 0


def _book(path: Path | None) -> Book:
    from dsh_plugin_mcp_client._fingerprints import Book, default_path

    if path is not None and not path.exists():
        raise click.ClickException(f"there is no file of fingerprints at {path}; see 'fingerprints' in the config")
    return Book(path if path is not None else default_path())


def _say_none(book: Book) -> None:
    """That nothing has changed is worth something only if the file is the one that the host uses: so it is named."""
    if book.path.exists():
        click.echo(f"No remote tool has changed since it was accepted, says {book.path}.")
    else:
        click.echo(
            f"No remote tool has been seen yet: there is no {book.path}; give --fingerprints if the config does."
        )


def _changes(book: Book) -> list[Change]:
    from dsh_plugin_mcp_client._fingerprints import FingerprintError

    try:
        return book.changes()
    except FingerprintError as error:
        raise click.ClickException(str(error)) from error


def _chosen(book: Book, changes: list[Change], names: tuple[str, ...]) -> list[Change]:
    chosen: dict[str, Change] = {}
    for name in names:
        found = [change for change in changes if name in (change.tool, f"{_server(change)}/{change.tool}")]
        if not found:
            known = ", ".join(f"{_server(change)}/{change.tool}" for change in changes) or "none"
            raise click.ClickException(f"no changed tool is named {name!r} in {book.path}; changed: {known}")
        if len(found) > 1:
            owners = ", ".join(f"{_server(change)}/{change.tool}" for change in found)
            raise click.ClickException(f"{name!r} has changed on several servers; name one of {owners}")
        chosen[found[0].server + "/" + found[0].tool] = found[0]
    return list(chosen.values())


def _server(change: Change) -> str:
    return change.server.rpartition(":")[0]


def _show(change: Change) -> None:
    label = f"{_server(change)}/{change.tool}"
    lines = difflib.unified_diff(
        _lines(change.accepted), _lines(change.pending), f"{label} (accepted)", f"{label} (now)", lineterm=""
    )
    for line in lines:
        click.echo(_readable(line))


def _lines(entry: dict[str, Any]) -> list[str]:
    return json.dumps(entry, indent=2, sort_keys=True, ensure_ascii=False).splitlines()


def _readable(line: str) -> str:
    """A line of a hostile server: what could hide text, or steer a terminal, is spelt out."""
    return "".join(char if char.isprintable() else f"\\u{{{ord(char):x}}}" for char in line)


def _counted(number: int) -> str:
    return "1 tool" if number == 1 else f"{number} tools"
