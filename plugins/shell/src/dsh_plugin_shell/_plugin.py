"""The plugin: it checks the folder and registers the tool."""

from __future__ import annotations

import errno
import os

from dsh_hookspecs import Context

from dsh_plugin_shell._config import Config
from dsh_plugin_shell._environment import clean_environment
from dsh_plugin_shell._errors import ShellError, folder_error
from dsh_plugin_shell._tool import shell_tool


def apply(ctx: Context, config: Config) -> None:
    """Register ``shell_run`` for the configured folder."""
    if os.name != "posix":
        raise ShellError("SHELL_NOT_STARTED", "the plugin 'shell' needs a POSIX system; remove it from the config")
    folder = os.path.abspath(config.folder)
    if not os.path.isdir(folder):
        raise folder_error(folder, errno.ENOTDIR if os.path.exists(folder) else errno.ENOENT)
    ctx.tools.register(shell_tool(config, folder, clean_environment(config, folder, os.environ)))
