"""Plugins that are installed under a name, loaded where the config names none that does the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsh_runtime.loader.discover import AmbiguousNameError, find_installed

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host


def is_installed(name: str) -> bool:
    """Whether a distribution has the entry point; if two have it, loading it will say so."""
    try:
        return find_installed(name) is not None
    except AmbiguousNameError:
        return True


async def mount_installed(host: Host, name: str) -> None:
    """Load an installed plugin behind the plugins of the config."""
    from dsh_runtime.loader.model import PluginRow
    from dsh_runtime.loader.resolve import resolve_plugin

    plugin = resolve_plugin(PluginRow(id=name, use=name))
    await host.ctx.plugin(plugin, {}, id=name).wait()
