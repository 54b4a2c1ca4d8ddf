"""A call's arguments as they are written on a command line.

``key=value`` is read by the tool's own schema: where it wants a string, the value is the text as it stands; where it
wants something else, the value is JSON; where it does not say, the value is JSON if it is some, else a text.
``key:=value`` is always JSON. ``a.b=value`` is the member ``b`` of ``a``, unless the schema has a property ``a.b``.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import trio

from dsh_runtime.cli.errors import CliError, note
from dsh_runtime.cli.text import shortened

_MAX_QUOTED = 60
_NO_ARGUMENTS = "for a call without arguments, give --json '{}' or </dev/null"
STDIN_PATIENCE = 2.0
"""After how many seconds a command says that it waits for its stdin."""


class Pair(NamedTuple):
    """One ``key=value`` or ``key:=value``."""

    key: str
    text: str
    is_json: bool


def read_document(wanted: str | None, has_pairs: bool) -> dict[str, Any] | None:
    """The arguments given as one JSON object by ``--json``; ``None`` if they may be on stdin."""
    if wanted == "-":
        return parse_document(_read_stdin(), "stdin")
    if wanted is not None:
        return parse_document(wanted, "--json")
    return {} if has_pairs else None


async def read_piped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments on stdin, where something is piped in and the tool takes any."""
    if not _takes_arguments(schema) or not _is_piped(sys.stdin):
        return {}
    with _telling_that_it_waits():
        # Below the stream, whose lock an abandoned read would hold when the interpreter ends.
        data = await trio.to_thread.run_sync(_read_all, sys.stdin.fileno(), abandon_on_cancel=True)
    try:
        text = data.decode(sys.stdin.encoding or "utf-8")
    except UnicodeDecodeError as error:
        raise _no_text(error) from None
    if not text.strip():
        return {}
    try:
        return parse_document(text, "stdin")
    except CliError as error:
        raise CliError(f"{error.message}; {_NO_ARGUMENTS}") from None


def _takes_arguments(schema: Mapping[str, Any]) -> bool:
    return bool(_properties(schema)) or isinstance(schema.get("additionalProperties"), Mapping)


def _read_all(descriptor: int) -> bytes:
    return b"".join(iter(lambda: os.read(descriptor, 1 << 16), b""))


@contextmanager
def _telling_that_it_waits() -> Iterator[None]:
    timer = threading.Timer(STDIN_PATIENCE, note, [f"waiting for the arguments on stdin; {_NO_ARGUMENTS}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def parse_document(text: str, source: str) -> dict[str, Any]:
    """Read one JSON object."""
    try:
        document = parse_json(text)
    except ValueError as error:
        remedy = 'give one JSON object, such as \'{"name": "Ada"}\''
        raise CliError(f"{source} does not hold JSON: {error}; {remedy}") from None
    if not isinstance(document, dict):
        raise CliError(f"{source} holds {_kind(document)}; the arguments of a call are one JSON object")
    return document


def split_pairs(texts: Sequence[str]) -> list[Pair]:
    """Take ``key=value`` apart."""
    return [_split(text) for text in texts]


def build_arguments(
    document: Mapping[str, Any], pairs: Sequence[Pair], schema: Mapping[str, Any], tool: str
) -> dict[str, Any]:
    """The arguments of a call: a document, with single ones put in."""
    arguments = dict(document)
    placed: set[tuple[str, ...]] = set()
    for pair in pairs:
        path = _path_of(pair.key, schema)
        if path in placed:
            raise CliError(f"argument '{pair.key}' of tool '{tool}' is given twice; give it once, or a list as JSON")
        placed.add(path)
        _put(arguments, path, _value_of(pair, _node_at(schema, path), tool), pair.key, tool)
    return arguments


def parse_json(text: str) -> Any:
    """Read JSON, and nothing that only Python takes for it; ``ValueError`` says where it ends."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise ValueError(f"the key {_quoted(key)} occurs twice in one object")
        table[key] = value
    return table


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _split(text: str) -> Pair:
    key, equals, value = text.partition("=")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not equals or not key:
        shown = _quoted(text)
        raise CliError(f"argument {shown} is no key=value; write name=text, name:=JSON, or the whole as --json '{{…}}'")
    return Pair(key, value, is_json)


def _path_of(key: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    steps = tuple(key.split("."))
    return (key,) if key in _properties(schema) or not all(steps) else steps


def _node_at(schema: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    node: Any = schema
    for step in path:
        node = _properties(node).get(step, {})
    return node if isinstance(node, Mapping) else {}


def _properties(node: Any) -> Mapping[str, Any]:
    properties = node.get("properties") if isinstance(node, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _value_of(pair: Pair, node: Mapping[str, Any], tool: str) -> Any:
    kind = node.get("type")
    if kind == "string" and not pair.is_json:
        return pair.text
    try:
        return parse_json(pair.text)
    except ValueError:
        if isinstance(kind, str) or pair.is_json:
            wants = f"takes {_article(kind)}" if isinstance(kind, str) else "is given as JSON"
            problem = f"{wants}, and {_quoted(pair.text)} is no JSON; {_remedy(kind)}"
            raise CliError(f"argument '{pair.key}' of tool '{tool}' {problem}") from None
        return pair.text


def _put(arguments: dict[str, Any], path: tuple[str, ...], value: Any, key: str, tool: str) -> None:
    """Put a value in its place; a table on the way is copied or made."""
    place = arguments
    for step in path[:-1]:
        inner = place.get(step, {})
        if not isinstance(inner, dict):
            problem = f"goes into '{step}', which is {_kind(inner)}; give one of the two"
            raise CliError(f"argument '{key}' of tool '{tool}' {problem}")
        place[step] = place = dict(inner)
    place[path[-1]] = value


def _is_piped(stream: Any) -> bool:
    """Whether stdin is a pipe, a file or a socket: not a terminal, nor the null device."""
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _read_stdin() -> str:
    if sys.stdin is None:
        raise CliError("stdin is closed; pipe the arguments in, or give them with --json '{…}'")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise _no_text(error) from None


def _no_text(error: UnicodeDecodeError) -> CliError:
    return CliError(f"stdin does not hold text: {error}; give JSON in UTF-8")


def _remedy(kind: Any) -> str:
    samples = {"string": "key=text for a text", "boolean": "true", "array": "'[…]'", "object": "'{…}'", "null": "null"}
    return f"write {samples[kind]}" if kind in samples else ("write a number" if kind else "quote texts: '\"…\"'")


def _article(kind: str) -> str:
    return {"null": "null"}.get(kind, f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}")


def _kind(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", type(None): "null", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")


def _quoted(text: str) -> str:
    return repr(shortened(text, _MAX_QUOTED))
