"""The plugin: its config, and the tools it registers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import Attribute, field, frozen
from attrs.validators import min_len
from dsh_hookspecs import Context

from dsh_plugin_fs._errors import FsError
from dsh_plugin_fs._exclude import Exclude
from dsh_plugin_fs._limits import Limits
from dsh_plugin_fs._roots import Roots, open_roots
from dsh_plugin_fs._search import Searcher
from dsh_plugin_fs._tool_change import edit_tool, write_tool
from dsh_plugin_fs._tool_read import read_tool
from dsh_plugin_fs._tool_search import glob_tool, grep_tool
from dsh_plugin_fs._write import Writer


def _can_be_opened(instance: object, attribute: Attribute[Any], paths: list[Path]) -> None:
    try:
        open_roots(paths).close()
    except FsError as error:
        raise ValueError(error.message) from error


def _can_be_compiled(instance: object, attribute: Attribute[Any], patterns: list[str]) -> None:
    try:
        Exclude(patterns)
    except FsError as error:
        raise ValueError(f"exclude: {error.message}") from error


@frozen(kw_only=True)
class Config(Limits):
    """The directories that the tools may use, and the bounds of one call.

    Relative paths start at the first of ``roots``. Directories named in ``ignore`` are left out of searches that do
    not start in them. What the globs of ``exclude`` match does not exist for any of the tools.
    """

    roots: list[Path] = field(validator=[min_len(1), _can_be_opened])
    ignore: list[str] = field(factory=lambda: [".git"])
    exclude: list[str] = field(factory=list, validator=_can_be_compiled)


def apply(ctx: Context, config: Config) -> None:
    """Open the roots and register the five tools; the roots close when the plugin goes."""
    roots = open_roots(config.roots, Exclude(config.exclude))

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
