"""Keeps large results out of the model's context: beginning, end and a locator instead, the whole text in a folder.

Layering, lowest first: ``_cut``; ``_store``; ``_spiller``, ``_tool``; ``_policy``.
"""

from __future__ import annotations

from dsh_plugin_spill._cut import cut, shares
from dsh_plugin_spill._policy import Config, apply, inject, name
from dsh_plugin_spill._spiller import Spiller
from dsh_plugin_spill._store import SpillError, Store, Window

__all__ = ["Config", "SpillError", "Spiller", "Store", "Window", "apply", "cut", "inject", "name", "shares"]
