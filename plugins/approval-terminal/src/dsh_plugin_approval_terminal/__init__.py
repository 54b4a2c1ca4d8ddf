"""Asks the person at the controlling terminal of the host's process.

Layering, lowest first: ``_keys``, ``_terminal``, ``_question``; ``_prompt``; ``_channel``. What needs a terminal is
imported when the first question comes.
"""

from __future__ import annotations

from typing import Final

from dsh_plugin_approval_terminal._channel import apply

__all__ = ["apply", "inject", "name"]

name: Final = "approval-terminal"
inject: Final = {"tools": True, "redact": False}
