"""One row of config is one server."""

from __future__ import annotations

from importlib import import_module

import trio
from dsh_hookspecs import Context

from dsh_plugin_mcp_client._config import Config


async def apply(ctx: Context, config: Config) -> None:
    """Keep the server for as long as the plugin is loaded; wait for the first connection unless told otherwise."""
    # The SDK takes its time to import; the event loop goes on meanwhile.
    await trio.to_thread.run_sync(import_module, "dsh_plugin_mcp_client._keeper")
    from dsh_plugin_mcp_client._fingerprints import Book, Fingerprints, book_path, server_key
    from dsh_plugin_mcp_client._keeper import Keeper

    server_id = ctx.fiber.id
    prints = Fingerprints(Book(book_path(config.fingerprints)), server_key(server_id, config.command, config.url))
    keeper = Keeper(ctx, config, prints, server_id)
    ctx.start_soon(keeper.run)
    if config.start == "wait":
        await keeper.settled.wait()
        if keeper.error is not None:
            raise keeper.error
