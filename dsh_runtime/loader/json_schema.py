"""Check a plugin's config against a JSON Schema, with fastjsonschema; defaults are not filled in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .blame import summary_of
from .errors import ConfigProblem, KeyPath, did_you_mean, quoted, shorten
from .model import Trace

MAX_SCHEMA_NODES = 100_000


class UnusableSchemaError(Exception):
    """Why a plugin's schema cannot be used."""


def check_against_schema(schema: Mapping[str, Any], value: dict[str, Any], trace: Trace) -> list[ConfigProblem]:
    """Everything in ``value`` that the schema refuses, each with its path and place."""
    import fastjsonschema

    validate = _compile(schema)
    try:
        validate(value)
    except fastjsonschema.JsonSchemaException as error:
        failures = getattr(error, "errors", [error])
        return [problem for failure in failures for problem in _explain(failure, value, trace)]
    except RecursionError as error:
        raise UnusableSchemaError("its JSON Schema refers to itself without end") from error
    return []


def _compile(schema: Mapping[str, Any]) -> Callable[[Any], Any]:
    import fastjsonschema

    _refuse_foreign_references(schema)
    options: dict[str, Any] = {"use_default": False, "handlers": dict.fromkeys(_SCHEMES, _refuse_to_fetch)}
    if "fast_fail" in inspect.signature(fastjsonschema.compile).parameters:
        options["fast_fail"] = False  # newer versions can report more than the first failure
    try:
        return fastjsonschema.compile(dict(schema), **options)
    except UnusableSchemaError:
        raise
    except Exception as error:
        raise UnusableSchemaError(f"its JSON Schema cannot be compiled: {summary_of(error)}") from error


_SCHEMES = ("", "http", "https", "ftp", "file", "data")


def _refuse_to_fetch(uri: str) -> Any:
    raise UnusableSchemaError(f"its JSON Schema refers to '{shorten(uri, 80)}'; only local references are followed")


def _refuse_foreign_references(schema: Mapping[str, Any]) -> None:
    pending: list[Any] = [schema]
    seen = 0
    while pending:
        node = pending.pop()
        seen += 1
        if seen > MAX_SCHEMA_NODES:
            raise UnusableSchemaError(f"its JSON Schema has more than {MAX_SCHEMA_NODES} parts, or contains itself")
        if isinstance(node, Mapping):
            reference = node.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#"):
                _refuse_to_fetch(reference)
            pending += node.values()
        elif isinstance(node, (list, tuple)):
            pending += node


def _explain(failure: Any, value: object, trace: Trace) -> Iterator[ConfigProblem]:
    path = _path_of(failure.path[1:], value)
    text = failure.message.removeprefix(failure.name or "data").strip()
    unknown = _unknown_keys(failure) if failure.rule == "additionalProperties" else {}
    for key, hint in unknown.items():
        message = f"there is no key {quoted(key)} here; {hint}"
        yield ConfigProblem((*trace.root, *path, key), message, trace.where((*path, key)))
    if not unknown:
        yield ConfigProblem((*trace.root, *path), shorten(text), trace.where(path))


def _unknown_keys(failure: Any) -> dict[str, str]:
    definition, value = failure.definition, failure.value
    if not isinstance(value, Mapping) or "patternProperties" in definition or failure.rule_definition is not False:
        return {}
    known = definition.get("properties", {})
    return {key: did_you_mean(key, known) for key in value if key not in known}


def _path_of(parts: list[str], value: object) -> KeyPath:
    """The keys behind a dotted name; a key that has dots in it comes as several parts."""
    path: KeyPath = ()
    while parts:
        taken = _next_key(parts, value)
        if taken is None:
            break
        key, used = taken
        value = value[key]  # type: ignore[index]
        path, parts = (*path, key), parts[used:]
    return path


def _next_key(parts: list[str], value: object) -> tuple[str | int, int] | None:
    if isinstance(value, list) and parts[0].isdecimal() and int(parts[0]) < len(value):
        return int(parts[0]), 1
    for used in range(1, len(parts) + 1):
        key = ".".join(parts[:used])
        if isinstance(value, dict) and key in value:
            return key, used
    return None
