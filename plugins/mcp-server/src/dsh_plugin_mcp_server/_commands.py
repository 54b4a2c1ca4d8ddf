"""``dsh-run token``: make a token for a client of the HTTP server."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("token", short_help="Make a token for a client of the MCP server over HTTP.")
@click.argument("name")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("tokens.toml"),
    show_default=True,
    help="The file of tokens (http.tokens in the plugin's config); it is made if it is not there.",
)
@click.option(
    "--right",
    "rights",
    type=click.Choice(["list", "call"]),
    multiple=True,
    default=["list", "call"],
    show_default=True,
    help="What its owner may do.",
)
def token(name: str, file: Path, rights: tuple[str, ...]) -> int:
    """Make a token for NAME, and print it. The file gets its hash alone: the token cannot be shown again.

    To revoke it, delete its [[token]] from the file; a running server notices with the next request.
    """
    from dsh_plugin_mcp_server._http.tokens import TokenFileError, add_token

    try:
        secret = add_token(file, name, list(rights))
    except TokenFileError as error:
        raise click.ClickException(f"the file of tokens '{file}' {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"the file of tokens '{file}' cannot be changed: {error}") from error
    click.echo(secret)
    return 0
