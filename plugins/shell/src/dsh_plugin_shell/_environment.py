"""The environment of a command: made from nothing, so that no secret of the host's gets in unnamed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from dsh_plugin_shell._config import Config

#: Its value tells the processes of one call from all others.
MARKER: Final = "DSH_SHELL_CALL"


def clean_environment(config: Config, folder: str, host: Mapping[str, str]) -> dict[str, str]:
    """``PATH``, ``HOME``, ``LANG`` and ``TERM``, then what the config names."""
    return {
        "PATH": host.get("PATH") or os.defpath,
        "HOME": folder,
        "LANG": host.get("LANG") or "C.UTF-8",
        "TERM": "dumb",
        **{name: host[name] for name in config.inherit if name in host},
        **config.env,
    }
