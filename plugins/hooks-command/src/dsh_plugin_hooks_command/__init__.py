"""Runs command hooks before and after tool calls, and does what they answer. Whatever goes wrong with one denies.

Layering, lowest first: ``_config``, ``_errors``; ``_settings``, ``_answers``, ``_run``; ``_policy``.
"""

from dsh_plugin_hooks_command._config import Config
from dsh_plugin_hooks_command._policy import apply

__all__ = ["Config", "apply", "name"]

name = "hooks-command"
