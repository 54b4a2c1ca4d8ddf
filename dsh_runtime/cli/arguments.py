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
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from dsh_runtime.cli.errors import CliError
from dsh_runtime.cli.text import shortened

_MAX_QUOTED = 60


class Pair(NamedTuple):
    """One ``key=value`` or ``key:=value``."""

    key: str
    text: str
    is_json: bool


def read_document(wanted: str | None, has_pairs: bool) -> dict[str, Any]:
    """The arguments given as one JSON object: by ``--json``, or else on stdin where something is piped in."""
    if wanted == "-":
        return parse_document(_read_stdin(), "stdin")
    if wanted is not None:
        return parse_document(wanted, "--json")
    if not has_pairs and _is_piped(sys.stdin):
        text = _read_stdin()
        return parse_document(text, "stdin") if text.strip() else {}
    return {}


def parse_document(text: str, source: str) -> dict[str, Any]:
    """Read one JSON object."""
    try:
        document = parse_json(text)
    except ValueError as error:
        remedy = "give one JSON object, such as '{\"name\": \"Ada\"}'"
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
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


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
        raise CliError(f"stdin does not hold text: {error}; give JSON in UTF-8") from None


def _remedy(kind: Any) -> str:
    samples = {"boolean": "true", "array": "'[…]'", "object": "'{…}'", "null": "null"}
    return f"write {samples[kind]}" if kind in samples else ("write a number" if kind else "quote texts: '\"…\"'")


def _article(kind: str) -> str:
    return {"null": "null"}.get(kind, f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}")


def _kind(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", type(None): "null", list: "an array", dict: "an object"}
    return names.get(type(value), "a number")


def _quoted(text: str) -> str:
    return repr(shortened(text, _MAX_QUOTED))
