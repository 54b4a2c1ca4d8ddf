"""``dsh-run mcp``: serve the tools to an MCP client over stdio, or to many over HTTP."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from dsh_runtime.cli.errors import SUCCESS, CliError
from dsh_runtime.cli.options import Options, common_options, examples, pass_options

if TYPE_CHECKING:
    from dsh_runtime.cli.running import Interruption
    from dsh_runtime.loader.host import Host

SERVICE: Final = "mcp_server"
DEFAULT: Final = "mcp-server"
"""The installed plugin that serves where the config names none."""


@click.command(
    "mcp",
    short_help="Serve the tools to MCP clients, over stdio or HTTP.",
    epilog=examples(
        "dsh-run mcp",
        "dsh-run -c /srv/dsh.toml mcp --http",
        "claude mcp add my-tools -- dsh-run -c /srv/dsh.toml mcp",
    ),
)
@click.option("--http", is_flag=True, help="Serve many clients over streamable HTTP instead, until interrupted.")
@common_options
@pass_options
def command(options: Options, http: bool) -> int:
    """Serve the tools of the config to the MCP client at the other end of stdin and stdout, until it leaves.

    With --http, serve many at the address that the plugin's config gives (127.0.0.1:8808 without one), under their
    tokens; stderr says where.

    Where no plugin of the config provides the service mcp_server, the installed plugin mcp-server does. Logs go to
    stderr. SIGHUP reloads the config and whatever has changed; with reload = true in [host], changes are noticed.
    """
    from dsh_runtime.cli.running import run

    return run(lambda interruption: _serve(interruption, options, http))


async def _serve(interruption: Interruption, options: Options, http: bool) -> int:
    from dsh_hookspecs import HarnessError

    from dsh_runtime.cli.session import for_models, open_session
    from dsh_runtime.loader.autoreload import refresh_soon

    async with open_session(options, record=True, stays=True, adapt=for_models) as host:
        interruption.on_hangup = partial(refresh_soon, host)
        if host.ctx.get(SERVICE) is None:
            await _mount_default(host)
        try:
            server = getattr(host.ctx, SERVICE)
            if http:
                await server.serve_http(lambda url: click.echo(f"serving MCP clients at {url}", err=True))
            else:
                await server.serve_stdio()
        except HarnessError as error:
            raise CliError(str(error)) from error
    return SUCCESS


async def _mount_default(host: Host) -> None:
    """Load the installed server behind the plugins of the config."""
    from dsh_runtime.cli.installed import is_installed, mount_installed

    if not is_installed(DEFAULT):
        raise CliError(
            f"no plugin provides the service '{SERVICE}', and the plugin '{DEFAULT}' is not installed; "
            "install dsh-plugin-mcp-server"
        )
    await mount_installed(host, DEFAULT)
