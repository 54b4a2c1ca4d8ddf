"""Lay the files of a config over one another, lowest first.

``[host]`` tables merge key by key. A plugin whose id a lower layer has already defined keeps its position there; its
``config`` merges key by key, its other keys are replaced. A new id goes to the end. Pins replace one another by id.
"""

from __future__ import annotations

from collections.abc import Iterable

from .check import is_valid_id
from .nodes import Array, Leaf, Node, Table, merge


def merge_layers(layers: Iterable[Table]) -> Table:
    """One tree from many. What is not of the right shape is left out: it has been reported."""
    host: Node = Table({})
    rows: dict[object, Node] = {}
    pins: Table | None = None
    for layer in layers:
        above = layer.entries.get("host")
        if isinstance(above, Table):
            host = merge(host, above) if isinstance(host, Table) and host.entries else above
        for row_id, row in _rows(layer):
            rows[row_id] = merge(rows[row_id], row) if row_id in rows else row
        pins = _with_pins(pins, layer.entries.get("pins"))
    merged = {"host": host, "plugin": Array(tuple(rows.values()))}
    return Table(merged if pins is None else {**merged, "pins": pins})


def _with_pins(below: Table | None, above: Node | None) -> Table | None:
    """A pin is replaced whole: a digest of one file never stands beside the version of another."""
    if not isinstance(above, Table):
        return below
    return Table({**(below.entries if below is not None else {}), **above.entries}, above.where)


def _rows(layer: Table) -> Iterable[tuple[object, Table]]:
    plugins = layer.entries.get("plugin")
    for row in plugins.items if isinstance(plugins, Array) else ():
        if isinstance(row, Table):
            node = row.entries.get("id")
            if isinstance(node, Leaf) and is_valid_id(node):
                yield node.value, row
