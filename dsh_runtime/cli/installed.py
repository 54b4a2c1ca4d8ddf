"""Plugins that are installed under a name, loaded where the config names none that does the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsh_runtime.cli.errors import CliError
from dsh_runtime.loader.discover import AmbiguousNameError, find_installed

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host


def is_installed(name: str) -> bool:
    """Whether a distribution has the entry point; if two have it, loading it will say so."""
    try:
        return find_installed(name) is not None
    except AmbiguousNameError:
        return True


def refused_by_pins(host: Host, name: str) -> str | None:
    """Why an installed plugin that the config does not name may not be loaded: only what is pinned may."""
    if host.config.pins is None:
        return None
    return (
        f"the plugin '{name}' is installed, but this config has [pins], and no plugin '{name}'; "
        f'add it (id = "{name}", use = "{name}") and run \'dsh-run plugins pin\''
    )


async def mount_installed(host: Host, name: str) -> None:
    """Load an installed plugin behind the plugins of the config."""
    from dsh_runtime.loader.model import PluginRow
    from dsh_runtime.loader.resolve import resolve_plugin

    refusal = refused_by_pins(host, name)
    if refusal is not None:
        raise CliError(refusal)
    plugin = resolve_plugin(PluginRow(id=name, use=name))
    await host.ctx.plugin(plugin, {}, id=name).wait()
