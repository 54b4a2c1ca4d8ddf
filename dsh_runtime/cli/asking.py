"""Who is asked about a call that somebody has to allow: whoever typed the command, if the config names no channel."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host

CHANNEL: Final = "approval-terminal"
"""The installed plugin that asks at the terminal."""


async def ask_at_terminal(host: Host) -> None:
    """Load the plugin that asks at the terminal, if there is a terminal, and nobody else to ask."""
    if not _at_terminal() or _is_configured(host) or host.ctx.approval.has_channel():
        return
    from dsh_runtime.cli.errors import note
    from dsh_runtime.cli.installed import is_installed, mount_installed, refused_by_pins

    if not is_installed(CHANNEL):
        return
    refusal = refused_by_pins(host, CHANNEL)
    if refusal is not None:
        note(f"nobody can be asked: {refusal}")
    else:
        await mount_installed(host, CHANNEL)


def _at_terminal() -> bool:
    """Whether a person reads along; what they have piped in or out does not matter."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # it has been closed
        return False


def _is_configured(host: Host) -> bool:
    """Whether the config has a say about the plugin, and be it that it is switched off."""
    return any(CHANNEL in (row.use, row.id) for row in host.config.rows)
