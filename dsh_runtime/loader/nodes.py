"""A config as a tree in which every value knows where it stands and whether it came from outside the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from attrs import evolve, field, frozen

from .errors import ConfigProblem, KeyPath, Location
from .positions import MAX_DEPTH


@frozen
class Leaf:
    """A scalar. ``secret``: it came from an environment variable or a file, and is never shown."""

    value: object = field(repr=False)
    where: Location | None = None
    secret: bool = False


@frozen
class Array:
    items: tuple[Node, ...]
    where: Location | None = None


@frozen
class Table:
    entries: Mapping[str, Node]
    where: Location | None = None


Node: TypeAlias = Leaf | Array | Table
Locate: TypeAlias = Callable[[KeyPath], Location | None]


class UnusableValueError(Exception):
    """A value that no config can hold; possible only where the config comes from Python."""

    def __init__(self, problem: ConfigProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def build_tree(value: object, locate: Locate, path: KeyPath = ()) -> Node:
    """Detach a plain value and give every part of it its place."""
    if isinstance(value, Mapping):
        _check_depth(path)
        return Table({_key(k, path): build_tree(v, locate, (*path, k)) for k, v in value.items()}, locate(path))
    if isinstance(value, (list, tuple)):
        _check_depth(path)
        return Array(tuple(build_tree(v, locate, (*path, i)) for i, v in enumerate(value)), locate(path))
    return Leaf(value, locate(path))


def to_plain(node: Node) -> object:
    """The value without its places, in fresh dicts and lists."""
    if isinstance(node, Table):
        return {key: to_plain(entry) for key, entry in node.entries.items()}
    if isinstance(node, Array):
        return [to_plain(item) for item in node.items]
    return node.value


def children(node: Node) -> Iterator[tuple[str | int, Node]]:
    """What stands directly inside a node, with its key."""
    if isinstance(node, Table):
        yield from node.entries.items()
    elif isinstance(node, Array):
        yield from enumerate(node.items)


def walk(node: Node, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Node]]:
    """A node and everything inside it, in the order of the document."""
    yield path, node
    for key, child in children(node):
        yield from walk(child, (*path, key))


def merge(below: Node, above: Node) -> Node:
    """Lay ``above`` over ``below``: tables merge key by key, anything else is replaced."""
    if not (isinstance(below, Table) and isinstance(above, Table)):
        return above
    entries = dict(below.entries)
    for key, node in above.entries.items():
        entries[key] = merge(entries[key], node) if key in entries else node
    return evolve(below, entries=entries)


def _key(key: object, path: KeyPath) -> str:
    if isinstance(key, str):
        return key
    message = f"the key {key!r} is no string; every key of a config is one"
    raise UnusableValueError(ConfigProblem(path, message))


def _check_depth(path: KeyPath) -> None:
    if len(path) >= MAX_DEPTH:
        message = f"the config nests deeper than {MAX_DEPTH} levels (or contains itself); flatten it"
        raise UnusableValueError(ConfigProblem(path[:4], message))
