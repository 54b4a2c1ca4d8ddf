"""File tools that cannot leave their roots: ``fs_read``, ``fs_write``, ``fs_edit``, ``fs_glob``, ``fs_grep``.

Layering, lowest first: ``_errors``, ``_limits``; ``_glob``; ``_exclude``; ``_roots``, ``_text``; ``_walk``, ``_lines``,
``_edit``, ``_hunks``, ``_match``; ``_read``, ``_write``; ``_tree``; ``_search``; ``_present``; the tools; ``_plugin``.
"""

from __future__ import annotations

from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._plugin import Config, apply

__all__ = ["Config", "FsError", "apply", "inject", "name"]

name = "fs"
inject = ["tools"]
