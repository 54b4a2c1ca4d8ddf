"""Check the shape of one config file: every key known, every value of its type, every id used once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from attrs import Attribute

from .errors import ConfigProblem, KeyPath, did_you_mean, format_path, kind_of, quoted, shorten
from .nodes import Array, Leaf, Node, Table, to_plain, walk
from .settings import HostSettings, UnexpectedValueError, check_setting, known_settings, table_of
from .target import BadUseError, parse_use

MAX_ID = 64
MAX_INCLUDES = 100

_TOP_KEYS = ("host", "include", "pins", "plugin")
_ROW_KEYS = ("config", "enabled", "id", "optional", "use")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def check_shape(root: Table) -> Iterator[ConfigProblem]:
    """Yield everything that is wrong with one file taken alone; paths are those of that file."""
    yield from _unknown_keys(root, (), _TOP_KEYS, "a config file has no key")
    yield from _check_includes(root.entries.get("include"))
    yield from _check_host(root.entries.get("host"))
    yield from _check_rows(root.entries.get("plugin"))
    if "pins" in root.entries:
        from .pin import check_pins  # which takes a millisecond that most hosts can save

        yield from check_pins(root.entries["pins"], _ID)


def is_valid_id(node: Node | None) -> bool:
    """Whether a row's ``id`` can stand for the row."""
    text = node.value if isinstance(node, Leaf) and not node.secret else None
    return isinstance(text, str) and len(text) <= MAX_ID and _ID.fullmatch(text) is not None


def _unknown_keys(table: Table, path: KeyPath, known: Iterable[str], rule: str) -> Iterator[ConfigProblem]:
    for key, node in table.entries.items():
        if key not in known:
            message = f"{rule} {quoted(key)}; {did_you_mean(key, known)}"
            yield ConfigProblem((*path, key), message, node.where)


def _check_includes(node: Node | None) -> Iterator[ConfigProblem]:
    if node is None:
        return
    if not isinstance(node, Array):
        message = f"'include' is {_kind(node)}; write a list of file names: include = [\"other.toml\"]"
        yield ConfigProblem(("include",), message, node.where)
        return
    if len(node.items) > MAX_INCLUDES:
        message = f"a file includes at most {MAX_INCLUDES} others, this one {len(node.items)}; include fewer"
        yield ConfigProblem(("include",), message, node.where)
    for index, item in enumerate(node.items):
        yield from _check_name(item, ("include", index), "an item of 'include'", "a file name")


def _check_host(node: Node | None) -> Iterator[ConfigProblem]:
    if node is None:
        return
    if not isinstance(node, Table):
        yield ConfigProblem(("host",), f"'host' is {_kind(node)}; write it as a table, [host]", node.where)
        return
    yield from _check_settings(node, HostSettings, ("host",))


def _check_settings(table: Table, cls: type[Any], path: KeyPath) -> Iterator[ConfigProblem]:
    """Everything that is wrong with a table of settings, and with those inside it."""
    known = known_settings(cls)
    yield from _unknown_keys(table, path, known, f"[{format_path(path)}] has no setting")
    for key, node in table.entries.items():
        inner = table_of(known[key]) if key in known else None
        if inner is not None and isinstance(node, Table):
            yield from _check_settings(node, inner, (*path, key))
        elif key in known:
            yield from _check_setting(known[key], node, (*path, key))


def _check_setting(setting: Attribute[Any], node: Node, path: KeyPath) -> Iterator[ConfigProblem]:
    try:
        check_setting(setting, to_plain(node))
    except UnexpectedValueError as error:
        yield ConfigProblem(path, f"expected {error}; got {describe(node)}", node.where)


def _check_rows(node: Node | None) -> Iterator[ConfigProblem]:
    if node is None:
        return
    if not isinstance(node, Array):
        yield ConfigProblem(("plugin",), f"'plugin' is {_kind(node)}; write each plugin as [[plugin]]", node.where)
        return
    for index, row in enumerate(node.items):
        if isinstance(row, Table):
            yield from _check_row(row, ("plugin", index))
        else:
            message = f"a plugin is a table, this is {_kind(row)}; write it as [[plugin]]"
            yield ConfigProblem(("plugin", index), message, row.where)
    yield from _check_duplicates(node)


def _check_row(row: Table, path: KeyPath) -> Iterator[ConfigProblem]:
    yield from _unknown_keys(row, path, _ROW_KEYS, "a [[plugin]] has no key")
    yield from _check_id(row, path)
    if "use" in row.entries:
        yield from _check_use(row.entries["use"], (*path, "use"))
    for key in ("enabled", "optional"):
        node = row.entries.get(key)
        if node is not None and not (isinstance(node, Leaf) and isinstance(node.value, bool)):
            yield ConfigProblem((*path, key), f"'{key}' must be true or false; got {describe(node)}", node.where)
    config = row.entries.get("config")
    if config is not None and not isinstance(config, Table):
        message = f"'config' must be a table; got {describe(config)}; write it as [plugin.config]"
        yield ConfigProblem((*path, "config"), message, config.where)


def _check_id(row: Table, path: KeyPath) -> Iterator[ConfigProblem]:
    node = row.entries.get("id")
    if node is None:
        yield ConfigProblem(path, "this [[plugin]] has no 'id'; give it one, any name that no other has", row.where)
    elif not is_valid_id(node):
        message = (
            f"'id' must be 1 to {MAX_ID} letters, digits, '.', '_' or '-', beginning with a letter or digit, "
            f"and stand there in full; got {describe(node)}"
        )
        yield ConfigProblem((*path, "id"), message, node.where)


def _check_use(node: Node, path: KeyPath) -> Iterator[ConfigProblem]:
    problems = list(_check_name(node, path, "'use'", "an entry-point name, 'package.module:attr' or './file.py'"))
    yield from problems
    if problems or not isinstance(node, Leaf):
        return
    try:
        parse_use(str(node.value), Path())
    except BadUseError as error:
        yield ConfigProblem(path, str(error), node.where)


def _check_name(node: Node, path: KeyPath, what: str, expected: str) -> Iterator[ConfigProblem]:
    """A name decides what is read or run, so it has to stand in the file itself."""
    if isinstance(node, Leaf) and node.secret:
        yield ConfigProblem(path, f"{what} takes no ${{…}}; write {expected} in full", node.where)
    elif not (isinstance(node, Leaf) and isinstance(node.value, str) and node.value):
        yield ConfigProblem(path, f"{what} must be {expected}; got {describe(node)}", node.where)


def _check_duplicates(rows: Array) -> Iterator[ConfigProblem]:
    first: dict[object, int] = {}
    for index, row in enumerate(rows.items):
        node = row.entries.get("id") if isinstance(row, Table) else None
        if not (isinstance(node, Leaf) and is_valid_id(node)):
            continue
        earlier = first.setdefault(node.value, index)
        if earlier != index:
            places = f"{_place(rows, earlier)} and {_place(rows, index)}"
            message = f"two plugins have the id '{node.value}' ({places}); rename one or remove it"
            yield ConfigProblem(("plugin", index, "id"), message, node.where)


def _place(rows: Array, index: int) -> str:
    where = rows.items[index].where
    return f"line {where.line}" if where else f"plugin[{index}]"


def describe(node: Node) -> str:
    """An offender for a message: its kind and, unless it is secret, its value."""
    if any(isinstance(inner, Leaf) and inner.secret for _, inner in walk(node)):
        return "a value from ${…}"
    if isinstance(node, Leaf) and isinstance(node.value, (str, int, float)):
        return f"{_kind(node)}, {shorten(repr(node.value), 80)}"
    return _kind(node)


def _kind(node: Node) -> str:
    if isinstance(node, Table):
        return "a table"
    return "an array" if isinstance(node, Array) else kind_of(node.value)
