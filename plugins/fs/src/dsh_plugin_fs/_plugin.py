"""The plugin: its config, and the tools it registers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import field, frozen
from attrs.validators import min_len
from dsh_hookspecs import Context

from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._roots import Roots, open_roots
from dsh_plugin_fs._search import Searcher
from dsh_plugin_fs._tool_change import edit_tool, write_tool
from dsh_plugin_fs._tool_read import read_tool
from dsh_plugin_fs._tool_search import glob_tool, grep_tool
from dsh_plugin_fs._write import Writer


@frozen(kw_only=True)
class Config(Limits):
    """The directories that the tools may use, and the bounds of one call.

    Relative paths start at the first of ``roots``. Directories named in ``ignore`` are left out of searches that do
    not start in them.
    """

    roots: list[Path] = field(validator=min_len(1))
    ignore: list[str] = field(factory=lambda: [".git"])


def apply(ctx: Context, config: Config) -> None:
    """Open the roots and register the five tools; the roots close when the plugin goes."""
    roots = open_roots(config.roots)

    def hold() -> Callable[[], None]:
        return roots.close

    ctx.effect(hold)
    _register(ctx, roots, config)


def _register(ctx: Context, roots: Roots, config: Config) -> None:
    writer = Writer(roots, config)
    searcher = Searcher(roots, config, config.ignore)
    for definition in (
        read_tool(roots, config),
        write_tool(roots, writer, config),
        edit_tool(roots, writer),
        glob_tool(searcher),
        grep_tool(searcher),
    ):
        ctx.tools.register(definition)
