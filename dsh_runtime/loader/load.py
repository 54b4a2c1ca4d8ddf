"""From a config file, or a mapping, to a checked ``HostConfig``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import ConfigError, ConfigProblem
from .include import Gathering
from .merge import merge_layers
from .model import HostConfig, HostSettings, PluginRow, Trace, trace_of
from .nodes import Array, Node, Table, UnusableValueError, build_tree, to_plain
from .settings import build_settings

if TYPE_CHECKING:
    from .pin import Pin

MAX_ROWS = 1_000


def load_config(
    source: str | os.PathLike[str] | Mapping[str, Any], *, environ: Mapping[str, str] = os.environ
) -> HostConfig:
    """Read, merge and check a config; no plugin is imported.

    ``source`` is the path of a TOML file, or a mapping of the same shape, whose relative paths start at the current
    directory. Raises one ``ConfigError`` with every problem that was found.
    """
    gathering = Gathering(environ)
    if isinstance(source, Mapping):
        gathering.add_tree(_tree_of(source), Path())
    else:
        gathering.add_file(Path(source))
    merged = merge_layers(gathering.layers)
    problems = [*gathering.problems, *_check_merged(merged)]
    if problems:
        raise ConfigError(problems)
    return _build(merged, gathering)


def _tree_of(source: Mapping[str, Any]) -> Table:
    try:
        tree = build_tree(source, lambda path: None)
    except UnusableValueError as error:
        raise ConfigError([error.problem]) from None
    assert isinstance(tree, Table)
    return tree


def _check_merged(merged: Table) -> Iterator[ConfigProblem]:
    rows = _rows(merged)
    if len(rows) > MAX_ROWS:
        yield ConfigProblem(("plugin",), f"a config has at most {MAX_ROWS} plugins, this one {len(rows)}; remove some")
    for index, row in enumerate(rows):
        if "use" not in row.entries:
            message = (
                f"plugin '{to_plain(row.entries['id'])}' does not say what to use; add "
                "use = an entry-point name, 'package.module:attr' or './file.py'"
            )
            yield ConfigProblem(("plugin", index), message, row.where)


def _rows(merged: Table) -> list[Table]:
    rows = merged.entries["plugin"]
    assert isinstance(rows, Array)
    return [row for row in rows.items if isinstance(row, Table)]


def _build(merged: Table, gathering: Gathering) -> HostConfig:
    trace = trace_of(merged)
    return HostConfig(
        rows=tuple(_build_row(row, trace.below("plugin", index)) for index, row in enumerate(_rows(merged))),
        host=_build_settings(merged.entries["host"]),
        pins=_build_pins(merged.entries.get("pins")),
        sources=tuple(gathering.sources),
        value_files=tuple(dict.fromkeys(gathering.value_files)),
        trace=trace,
    )


def _build_pins(node: Node | None) -> Mapping[str, Pin] | None:
    if node is None:
        return None
    from .pin import build_pins  # which takes a millisecond that most hosts can save

    return build_pins(node)


def _build_row(row: Table, trace: Trace) -> PluginRow:
    values = to_plain(row)
    assert isinstance(values, dict)
    used_in = trace.exact(("use",))
    directory = Path(used_in.file).parent if used_in else Path()
    return PluginRow(**values, directory=directory.absolute(), origin=trace.exact(), trace=trace)


def _build_settings(host: Node) -> HostSettings:
    values = to_plain(host)
    assert isinstance(values, dict)
    return build_settings(HostSettings, values)
