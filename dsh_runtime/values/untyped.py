"""Typed tools, the way back: what a body returns, to the JSON value that its annotation promises.

An instance is taken apart by the annotation, never by what it happens to be, and only where the annotation names a
class; anything else is left for the schema and the snapshot to judge, as in a tool that declares a spec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import NoneType
from typing import Any, Literal, get_args, get_origin, is_typeddict

import attrs
from dsh_hookspecs import ToolOutputError

from dsh_runtime.values.annotations import ARRAYS, OBJECTS, bare, is_union, schema_of
from dsh_runtime.values.compiled import CompiledSchema, compile_schema
from dsh_runtime.values.fields import fields_of, is_record
from dsh_runtime.values.paths import Report
from dsh_runtime.values.typed import Fault, Make, Refused, each, said

_SCALARS = (str, int, float, bool, NoneType)


def unstructure(annotation: Any, subject: str = "the value") -> Callable[[Any], Any] | None:
    """Give a function that makes an instance of ``annotation`` into a JSON value; ``None``: nothing to do.

    A value that is no instance is a ``ToolOutputError``, as is whatever goes wrong on the way; ``subject`` says whose
    value it is.
    """
    apart = _apart(annotation)
    if apart is None:
        return None

    def take_apart(value: Any) -> Any:
        try:
            return apart(value)
        except Refused as refused:
            violations = refused.into(Report("value")).violations
            listed = "; ".join(map(str, violations[:5]))
            more = f"; and {len(violations) - 5} more" if len(violations) > 5 else ""
            text = f"{subject} is not what its output type promises: {listed}{more}"
            raise ToolOutputError(text, violations) from refused.__cause__
        except Exception as error:
            raise ToolOutputError(f"{subject} cannot be read: {type(error).__name__}: {said(error)}") from error

    return take_apart


def _apart(annotation: Any) -> Make:
    annotation = bare(annotation)
    base = get_origin(annotation) or annotation
    if is_union(annotation):
        return _union(annotation)
    if base is Literal:
        return _enum_value if any(isinstance(item, Enum) for item in get_args(annotation)) else None
    if base in ARRAYS:
        return _array(annotation, base)
    if base in OBJECTS:
        return _mapping(annotation, base)
    if is_record(annotation):
        return _typed_dict(annotation) if is_typeddict(annotation) else _record(annotation)
    return _enum_value if isinstance(annotation, type) and issubclass(annotation, Enum) else None


def _enum_value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _array(annotation: Any, base: Any) -> Make:
    inner = get_args(annotation)
    apart = _apart(inner[0]) if inner else None
    if apart is None:
        return None if base is list or base is tuple else lambda value: list(value) if _is_array(value) else value
    return lambda value: each(apart, value, enumerate(value)) if _is_array(value) else value


def _mapping(annotation: Any, base: Any) -> Make:
    inner = get_args(annotation)
    apart = _apart(inner[1]) if inner else None
    if apart is None:
        return None if base is dict else lambda value: dict(value) if isinstance(value, Mapping) else value

    def take_apart(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        entries = dict(value)
        return dict(zip(entries, each(apart, entries.values(), _by_name(entries)), strict=True))

    return take_apart


def _by_name(entries: dict[Any, Any]) -> list[tuple[str, Any]]:
    return [(str(key), item) for key, item in entries.items()]


def _is_array(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _typed_dict(record: type) -> Make:
    aparts = {item.name: apart for item in fields_of(record) if (apart := _apart(item.annotation)) is not None}
    if not aparts:
        return None

    def take_apart(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        entries = dict(value)
        return {**entries, **_members({name: entries[name] for name in aparts if name in entries}, aparts)}

    return take_apart


def _record(record: type) -> Make:
    """Take a record apart by the same fields that its schema lists."""
    fields = fields_of(record)
    aparts = {item.name: _apart(item.annotation) for item in fields}

    def take_apart(value: Any) -> Any:
        if not isinstance(value, record):
            raise _no_instance([record], value)
        return _members({item.name: getattr(value, item.attribute) for item in fields}, aparts)

    return take_apart


def _members(value: dict[str, Any], aparts: Mapping[str, Make]) -> dict[str, Any]:
    faults: list[Fault] = []
    for name, item in value.items():
        apart = aparts[name]
        if apart is not None:
            try:
                value[name] = apart(item)
            except Refused as refused:
                faults += refused.below(name)
    if faults:
        raise Refused(faults)
    return value


def _no_instance(wanted: Sequence[Any], value: Any) -> Refused:
    names = ["None" if kind is NoneType else getattr(kind, "__name__", str(kind)) for kind in wanted]
    known = "an instance of " + " or ".join(names)
    came = "None" if value is None else f"a value of type {type(value).__name__}"
    return Refused([((), f"must be {known}, not {came}; return one, or change the annotation")])


@attrs.frozen
class _Member:
    """A member of a union."""

    annotation: Any
    apart: Make
    schema: CompiledSchema

    @classmethod
    def of(cls, annotation: Any) -> _Member:
        return cls(bare(annotation), _apart(annotation), compile_schema(schema_of(annotation)))

    def could_be(self, value: Any) -> bool:
        """Whether the kind of the value is the member's, whatever stands in it."""
        base = get_origin(self.annotation) or self.annotation
        if base is Literal or base in _SCALARS or base is None:
            return isinstance(value, (*_SCALARS, Enum))
        if base in ARRAYS:
            return _is_array(value)
        if base in OBJECTS or is_typeddict(base):
            return isinstance(value, Mapping)
        if isinstance(base, type) and base is not object:
            return isinstance(value, base) or (issubclass(base, Enum) and isinstance(value, _SCALARS))
        return True  # Any


def _union(union: Any) -> Make:
    """Take apart by the member that the value is an instance of; its own class comes before a base of it."""
    members = [_Member.of(member) for member in get_args(union)]
    if all(member.apart is None for member in members):
        return None

    def take_apart(value: Any) -> Any:
        exact = [member for member in members if member.annotation is type(value)]
        likely = exact or [member for member in members if member.could_be(value)]
        if not likely:
            raise _no_instance([member.annotation for member in members], value)
        for member in likely[:-1]:
            try:
                found = value if member.apart is None else member.apart(value)
            except Refused:
                continue
            if member.schema.takes(found):
                return found
        apart = likely[-1].apart
        return value if apart is None else apart(value)

    return take_apart
