"""Where the config file is looked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from .errors import ConfigError, ConfigProblem

FILE_NAME = "dsh.toml"


def find_config(
    explicit: str | os.PathLike[str] | None = None,
    *,
    directory: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
) -> Path:
    """The file given with ``--config``, else ``./dsh.toml``, else the one in the user's config directory.

    A file that was asked for is the only one that will do. ``directory`` stands in for the current one.
    """
    if explicit is not None:
        places, remedy = [Path(explicit)], "correct the path given with --config"
    else:
        places = _usual_places(directory or Path(), environ, platform)
        remedy = f"write a {FILE_NAME} in one of these places, or name another file with --config"
    for place in places:
        if os.path.isfile(place):
            return place
    looked = ", ".join(f"'{place}'" for place in places)
    raise ConfigError([ConfigProblem((), f"no config file found; looked for {looked}; {remedy}")])


def user_config_directory(environ: Mapping[str, str], platform: str) -> Path | None:
    """Where a user keeps configs: ``%APPDATA%`` on Windows, else ``$XDG_CONFIG_HOME`` or ``~/.config``."""
    if platform == "win32":
        return Path(environ["APPDATA"]) if environ.get("APPDATA") else None
    configured = environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(configured):
        return Path(configured)
    return Path(environ["HOME"]) / ".config" if environ.get("HOME") else None


def _usual_places(directory: Path, environ: Mapping[str, str], platform: str) -> list[Path]:
    user = user_config_directory(environ, platform)
    return [directory / FILE_NAME] + ([user / "dsh" / FILE_NAME] if user else [])
