"""Typed tools: checked values to instances of their annotations. (``untyped`` is the way back.)

Strategy: each annotation is read once, into a function that builds one value. ``None`` in place of such a function
says that the value stays as it is, so plain JSON costs nothing. Faults carry the place below the value that has them;
what stands above puts its own segment before it, on the way out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, TypeAlias, get_args, get_origin, is_typeddict

import attrs
from dsh_hookspecs import JsonValue, ToolArgsError, ToolOutputError

from dsh_runtime.values.annotations import ARRAYS, OBJECTS, bare, is_union, schema_of
from dsh_runtime.values.compiled import CompiledSchema, compile_schema
from dsh_runtime.values.fields import Field, fields_of, is_record
from dsh_runtime.values.literals import scalar_key
from dsh_runtime.values.paths import Link, Report

#: Makes one value into another; ``None``: it stays as it is.
Make: TypeAlias = "Callable[[Any], Any] | None"
#: The segments below a value, and what is wrong there.
Fault: TypeAlias = "tuple[tuple[str | int, ...], str]"


class Refused(Exception):  # noqa: N818 - control flow
    """A value cannot be made into another."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        super().__init__()
        self.faults = list(faults)

    def below(self, segment: str | int) -> list[Fault]:
        """The faults as they look from the container that has this value at ``segment``."""
        return [((segment, *path), message) for path, message in self.faults]

    def into(self, report: Report) -> Report:
        """Note every fault."""
        for path, message in self.faults:
            link: Link = None
            for segment in path:
                link = (link, segment)
            report.add(link, message)
        return report


def structure(annotation: Any, *, of_output: bool = False) -> Callable[[JsonValue], Any]:
    """Give a function that makes a checked JSON value into an instance of ``annotation``.

    What the schema cannot say and the class refuses (a validator) is a ``ToolArgsError`` that names the places; of an
    output it is a ``ToolOutputError``.
    """
    make = _builder(annotation)

    def build(value: JsonValue) -> Any:
        if make is None:
            return value
        try:
            return make(value)
        except Refused as refused:
            if of_output:
                violations = refused.into(Report("value")).violations
                raise ToolOutputError("; ".join(map(str, violations)), violations) from refused.__cause__
            raise _bad_arguments(refused) from refused.__cause__

    return build


def structure_fields(fields: list[Field]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Give a function that makes checked arguments into keyword arguments; undeclared members are left out."""
    makers = {item.name: _builder(item.annotation) for item in fields}

    def build(value: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return _members(value, makers)
        except Refused as refused:
            raise _bad_arguments(refused) from refused.__cause__

    return build


def _bad_arguments(refused: Refused) -> ToolArgsError:
    violations = refused.into(Report("arguments", bare_members=True)).violations
    return ToolArgsError("; ".join(map(str, violations)), violations)


def _builder(annotation: Any) -> Make:
    annotation = bare(annotation)
    base = get_origin(annotation) or annotation
    if is_union(annotation):
        return _union(annotation)
    if base is Literal:
        return _literal(get_args(annotation))
    if base is int or base is float:
        return _integer if base is int else _real
    if base in ARRAYS:
        return _array(annotation, list if base is list else tuple)
    if base in OBJECTS:
        return _mapping(annotation)
    if is_record(annotation):
        return _record(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _literal(tuple(annotation))
    return None


def _integer(value: Any) -> Any:
    return int(value) if type(value) is float else value  # 1.0 is an integer


def _real(value: Any) -> Any:
    try:
        return float(value)
    except OverflowError:
        raise Refused([((), "is an integer too large for a float; send a smaller one")]) from None


def _literal(allowed: Iterable[Any]) -> Make:
    by_key = {scalar_key(item.value if isinstance(item, Enum) else item): item for item in allowed}
    return lambda value: by_key[scalar_key(value)]


def _array(annotation: Any, kind: Callable[[Iterable[Any]], Any]) -> Make:
    inner = get_args(annotation)
    make = _builder(inner[0]) if inner else None
    if make is None:
        return kind
    return lambda value: kind(each(make, value, enumerate(value)))


def _mapping(annotation: Any) -> Make:
    inner = get_args(annotation)
    make = _builder(inner[1]) if inner else None
    if make is None:
        return dict
    return lambda value: dict(zip(value, each(make, value.values(), value.items()), strict=True))


def each(make: Callable[[Any], Any], items: Iterable[Any], places: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Make every item, or refuse with the faults of all of them; ``places`` are the items with their segments."""
    try:
        return [make(item) for item in items]
    except Refused:
        faults: list[Fault] = []
        for segment, item in places:
            try:
                make(item)
            except Refused as refused:
                faults += refused.below(segment)
        raise Refused(faults) from None


def _members(value: Mapping[str, Any], makers: Mapping[str, Make]) -> dict[str, Any]:
    """Make the declared members that are there; undeclared ones are left out."""
    made: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, make in makers.items():
        if name in value:
            try:
                made[name] = value[name] if make is None else make(value[name])
            except Refused as refused:
                faults += refused.below(name)
    if faults:
        raise Refused(faults)
    return made


def _record(record: type) -> Make:
    """Build a record from the same fields that its schema lists."""
    makers = {item.name: _builder(item.annotation) for item in fields_of(record)}
    if is_typeddict(record):
        return lambda value: {**value, **_members(value, makers)}

    def make(value: Any) -> Any:
        found = _members(value, makers)
        try:
            return record(**found)
        except Exception as error:
            raise Refused(_blamed(record, found, error)) from error

    return make


def _blamed(record: type, found: Mapping[str, Any], error: Exception) -> list[Fault]:
    """Find the fields whose converters or validators refuse; what none of them refuses is the record's own fault.

    Making an instance ends at the first, and its exception does not say which field it is about. So each is asked
    again, on an instance that no ``__init__`` has seen.
    """
    faults: list[Fault] = []
    if attrs.has(record):
        with contextlib.suppress(Exception):
            faults = list(_refusals(record, found))
    return faults or [((), said(error))]


def _refusals(record: Any, found: Mapping[str, Any]) -> Iterable[Fault]:
    blank = record.__new__(record)
    fields = [item for item in attrs.fields(record) if item.init]
    for item in fields:
        try:
            value = found[item.alias] if item.alias in found else _default(item, blank)
            value = _converted(item, value, blank)
        except Exception as error:
            yield (item.alias,), said(error)
            return
        object.__setattr__(blank, item.name, value)
    for item in fields:
        try:
            if item.validator is not None:
                item.validator(blank, item, getattr(blank, item.name))
        except Exception as error:
            yield (item.alias,), said(error)


def _default(item: Any, blank: Any) -> Any:
    default = item.default
    if not isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        return default
    return default.factory(blank) if default.takes_self else default.factory()


def _converted(item: Any, value: Any, blank: Any) -> Any:
    convert = item.converter
    if convert is None:
        return value
    if not isinstance(convert, attrs.Converter):
        return convert(value)
    wrapped: Any = convert
    extra = [blank] * wrapped.takes_self + [item] * wrapped.takes_field
    return wrapped.converter(value, *extra)


def said(error: Exception) -> str:
    """What an exception says (of several arguments, as attrs gives them, the text), or its class."""
    try:
        text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    except Exception:
        text = ""
    return text or type(error).__name__


def _union(union: Any) -> Make:
    """Build the member of a union whose schema the value fits."""
    members = [bare(member) for member in get_args(union)]
    plain = frozenset(member for member in members if member in (str, int, float, bool, type(None)))
    choices: list[tuple[CompiledSchema, Make]] = [
        (compile_schema(schema_of(member)), _builder(member)) for member in members
    ]
    if all(make is None for _, make in choices):
        return None

    def make(value: Any) -> Any:
        if type(value) in plain:
            return value
        for schema, build in choices:
            if schema.takes(value):
                return value if build is None else build(value)
        raise Refused([((), f"fits no member of {union}")])

    return make
