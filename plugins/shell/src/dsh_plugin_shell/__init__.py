"""One tool, ``shell_run``: runs a command in a configured folder and leaves nothing of it behind.

Layering, lowest first: ``_errors``; ``_config``, ``_environment``, ``_order``; ``_capture``, ``_strays``; ``_run``;
``_tool``; ``_plugin``. ``_warden`` is a program of its own, which imports nothing of the others.
"""

from __future__ import annotations

from dsh_plugin_shell._config import Config
from dsh_plugin_shell._errors import ShellError
from dsh_plugin_shell._plugin import apply

__all__ = ["Config", "ShellError", "apply", "inject", "name"]

name = "shell"
inject = ["tools"]
