"""The fields of the classes that a typed tool may use: attrs classes, dataclasses and TypedDicts."""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, get_args, get_origin, is_typeddict

import attrs
from dsh_hookspecs import JsonScalar, JsonValue, JsonValueError

from dsh_runtime.values.docstrings import parse_docstring
from dsh_runtime.values.frozen import thaw
from dsh_runtime.values.snapshot import snapshot_json

MISSING: Final = object()


@attrs.frozen
class Field:
    """One field of a class, or one parameter of a function."""

    name: str
    annotation: Any
    required: bool
    default: Any = MISSING  # its JSON form, where it has one
    description: str | None = None
    attribute: str = ""  # where an instance keeps it, when the instance is no dict


def is_record(annotation: Any) -> bool:
    """Tell whether a class has fields that become the properties of an object."""
    if not isinstance(annotation, type):
        return False
    return attrs.has(annotation) or dataclasses.is_dataclass(annotation) or is_typeddict(annotation)


def fields_of(record: type) -> list[Field]:
    """List the fields that an instance is made from, in the order of their definition."""
    hints = resolved_hints(record)
    if is_typeddict(record):
        return [_key(record, name, hint) for name, hint in hints.items()]
    if attrs.has(record):
        own = [_attrs_field(item, hints) for item in attrs.fields(record) if item.init]
    else:
        own = [_dataclass_field(item, hints) for item in dataclasses.fields(record) if item.init]
    said = parse_docstring(record.__doc__).parameters
    return [attrs.evolve(item, description=item.description or said.get(item.name)) for item in own]


def _key(record: type, name: str, hint: Any) -> Field:
    required = name in getattr(record, "__required_keys__", ())
    while get_origin(hint) in _QUALIFIERS:
        required = get_origin(hint) is typing.Required or (required and get_origin(hint) is not typing.NotRequired)
        hint = get_args(hint)[0]
    return Field(name, hint, required, description=parse_docstring(record.__doc__).parameters.get(name))


def _attrs_field(item: Any, hints: dict[str, Any]) -> Field:
    default = item.default
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        default = default.factory() if default.factory in (list, dict, tuple) else attrs.NOTHING
    return Field(
        name=item.alias,
        annotation=hints.get(item.name, MISSING),
        required=item.default is attrs.NOTHING,
        default=json_default(default),
        description=_said(item),
        attribute=item.name,
    )


def _dataclass_field(item: Any, hints: dict[str, Any]) -> Field:
    default = item.default
    if item.default_factory in (list, dict, tuple):
        default = item.default_factory()
    required = default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    return Field(item.name, hints.get(item.name, MISSING), required, json_default(default), _said(item), item.name)


def _said(item: Any) -> str | None:
    said = item.metadata.get("description")
    return said if isinstance(said, str) else None


def json_default(value: Any) -> Any:
    """Give the JSON form of a default, or ``MISSING`` when it has none."""
    if value is attrs.NOTHING:
        return MISSING
    try:
        return thaw(snapshot_json(value.value if isinstance(value, Enum) else value))
    except JsonValueError:
        return MISSING


_QUALIFIERS = tuple(getattr(typing, name) for name in ("Required", "NotRequired", "ReadOnly") if hasattr(typing, name))


def resolved_hints(owner: Callable[..., Any] | type) -> dict[str, Any]:
    """Resolve annotations, strings included. ``JsonValue``, an alias that refers to itself, reads as ``Any``."""
    module = sys.modules.get(owner.__module__)
    return typing.get_type_hints(owner, localns=_names(vars(module) if module else {}), include_extras=True)


def _names(namespace: Mapping[str, Any]) -> dict[str, Any]:
    names: dict[str, Any] = {"JsonValue": Any, "JsonScalar": Any, "Sequence": Sequence, "Mapping": Mapping}
    free = {name: value for name, value in names.items() if name not in namespace}
    aliases = {name: Any for name, value in namespace.items() if isinstance(value, str) and value in _ALIASES}
    return {**free, **aliases}


_ALIASES: Final = frozenset((JsonValue, JsonScalar)) if isinstance(JsonValue, str) else frozenset[Any]()
