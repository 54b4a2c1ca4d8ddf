"""Listening: what is checked before a port is opened, and how the server stops.

It stops in two steps. First no more is taken and what runs may come to an end; after ``graceful_timeout`` the rest is
aborted. The server is hypercorn, on trio.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import trio
from dsh_hookspecs import Context, HarnessError

from dsh_plugin_mcp_server._config import Config, HttpConfig
from dsh_plugin_mcp_server._http.app import App
from dsh_plugin_mcp_server._http.clients import Clients, check_configs
from dsh_plugin_mcp_server._http.modern import Modern
from dsh_plugin_mcp_server._http.origins import is_loopback
from dsh_plugin_mcp_server._http.sessions import Sessions
from dsh_plugin_mcp_server._http.tokens import TokenFile

_log = logging.getLogger(__name__)
#: Seconds for which an idle connection is kept; clients give up theirs sooner.
_KEEP_ALIVE: Final = 75.0
#: So many connections wait to be taken.
_BACKLOG: Final = 1024


class ListenError(HarnessError):
    """The server may not, or cannot, listen where the config says."""

    default_code = "CANNOT_LISTEN"


async def serve_http(ctx: Context, config: Config, listening: Callable[[str], None] | None = None) -> None:
    """Serve until cancelled."""
    tokens = _tokens(config.http)
    check_configs(ctx, config.http.clients, config.presentation)
    async with trio.open_nursery() as parts:
        app = App(
            config,
            tokens,
            Clients(ctx, config.http.clients, config.presentation),
            Sessions(ctx, config, parts.start_soon),
            Modern(ctx, config, parts.start_soon),
        )
        try:
            await _listen(app, config.http, listening)
        finally:
            parts.cancel_scope.cancel()


def _tokens(http: HttpConfig) -> TokenFile | None:
    if http.tokens is None:
        if not is_loopback(http.host):
            raise ListenError(
                f"the MCP server may not listen on {http.host!r} without tokens; "
                "give http.tokens, or listen on 127.0.0.1"
            )
        return None
    tokens = TokenFile(Path(http.tokens).expanduser())
    tokens.read()
    return tokens


async def _listen(app: App, http: HttpConfig, listening: Callable[[str], None] | None) -> None:
    stop = trio.Event()
    with trio.CancelScope(shield=True) as serving:
        async with trio.open_nursery() as nursery:
            binds = await _start(nursery, app, http, stop)
            url = f"{'https' if http.certificate else 'http'}://{binds[0].split('://', 1)[-1]}{http.path}"
            _log.info("serving MCP clients at %s", url)
            if listening is not None:
                listening(url)
            try:
                # Only the wait can be cancelled; what follows is the orderly end.
                serving.shield = False
                await trio.sleep_forever()
            finally:
                serving.shield = True
                app.stopping = True
                stop.set()


async def _start(nursery: trio.Nursery, app: App, http: HttpConfig, stop: trio.Event) -> list[str]:
    try:
        from hypercorn.config import Config as Hypercorn
        from hypercorn.trio import serve
    except ImportError as error:
        raise ListenError(f"HTTP needs hypercorn ({error}); install dsh-plugin-mcp-server[http]") from error
    settings = Hypercorn()
    host = f"[{http.host}]" if ":" in http.host else http.host
    settings.bind = [f"{host}:{http.port}"]
    settings.graceful_timeout = http.graceful_timeout
    settings.certfile, settings.keyfile = http.certificate, http.key
    settings.accesslog = settings.errorlog = None
    settings.include_server_header = False
    # A connection that is closed while its client sends the next request costs that request.
    settings.keep_alive_timeout = _KEEP_ALIVE
    settings.keep_alive_max_requests = sys.maxsize
    settings.backlog = _BACKLOG
    settings.h11_max_incomplete_size = 16_384
    served: Any = app
    try:
        binds: list[str] = await nursery.start(_run, serve, served, settings, stop)
    except OSError as error:
        raise ListenError(f"the MCP server cannot listen on {host}:{http.port}: {error}") from error
    return binds


async def _run(serve: Any, app: Any, settings: Any, stop: trio.Event, *, task_status: Any) -> None:
    await serve(app, settings, shutdown_trigger=stop.wait, task_status=task_status, mode="asgi")
