"""Typed tools: values to instances and back, by converters that cattrs builds on first use."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, is_typeddict

import attrs
from dsh_hookspecs import JsonValue, ToolArgsError, Violation

from dsh_runtime.values.annotations import schema_of
from dsh_runtime.values.codegen import Mismatch
from dsh_runtime.values.compiled import CompiledSchema, compile_schema
from dsh_runtime.values.fields import Field, fields_of, is_record

if TYPE_CHECKING:
    from cattrs import Converter

_PLAIN = (str, int, float, bool, types.NoneType)


def structure(annotation: Any) -> Callable[[JsonValue], Any]:
    """Give a function that makes a checked JSON value into an instance of ``annotation``.

    What the schema cannot say and the class refuses (a validator, the values of a ``dict[str, int]``) is a
    ``ToolArgsError`` that names the places.
    """
    made: list[Converter] = []

    def build(value: JsonValue) -> Any:
        if not made:
            made.append(_converter())
        return _structured(made[0], value, annotation)

    return build


def structure_fields(fields: list[Field]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Give a function that makes checked arguments into keyword arguments; undeclared members are left out."""
    builders = {item.name: structure(item.annotation) for item in fields}

    def build(value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: builder(value[name]) for name, builder in builders.items() if name in value}

    return build


def unstructure(annotation: Any) -> Callable[[Any], Any]:
    """Give a function that makes an instance of ``annotation`` into a JSON value."""
    made: list[Converter] = []

    def take_apart(value: Any) -> Any:
        if not made:
            made.append(_converter())
        return made[0].unstructure(value, unstructure_as=annotation)

    return take_apart


def _structured(converter: Converter, value: JsonValue, annotation: Any) -> Any:
    from cattrs import BaseValidationError, transform_error

    try:
        return converter.structure(value, annotation)
    except BaseValidationError as error:
        lines = transform_error(error, path="arguments")
        violations = [_violation(line) for line in lines]
        raise ToolArgsError("; ".join(map(str, violations)), violations) from error


def _violation(line: str) -> Violation:
    message, _, path = line.rpartition(" @ ")
    return Violation(path.removeprefix("arguments.") or "arguments", message or line)


def _converter() -> Converter:
    """Make a converter for one tool; a shared one would keep the classes of unloaded plugins alive."""
    from cattrs import Converter

    converter = Converter()
    converter.register_structure_hook_factory(is_record, lambda record: _record_hook(record, converter))
    converter.register_structure_hook_factory(_is_union, lambda union: _union_hook(union, converter))
    converter.register_unstructure_hook_factory(is_record, lambda record: _apart_hook(record, converter))
    converter.register_unstructure_hook_factory(_is_union, lambda union: converter.unstructure)
    return converter


def _record_hook(record: type, converter: Converter) -> Callable[[Any, Any], Any]:
    """Structure a record by the same fields that its schema lists."""
    fields = fields_of(record)

    def hook(value: Any, _: Any) -> Any:
        from cattrs.errors import ClassValidationError

        found: dict[str, Any] = {}
        failures: list[Exception] = []
        for item in fields:
            if item.name in value:
                try:
                    found[item.name] = converter.structure(value[item.name], item.annotation)
                except Exception as error:
                    failures.append(_located(error, record, item))
        if not failures:
            try:
                return {**value, **found} if is_typeddict(record) else record(**found)
            except Exception as error:
                failures.append(error)
        raise ClassValidationError(f"cannot make a {record.__name__}", failures, record)

    return hook


def _located(error: Exception, record: type, item: Field) -> Exception:
    from cattrs.errors import AttributeValidationNote

    note = AttributeValidationNote(f"{record.__name__}.{item.name}", item.name, item.annotation)
    error.__notes__ = [*getattr(error, "__notes__", []), note]
    return error


def _apart_hook(record: type, converter: Converter) -> Callable[[Any], Any]:
    """Unstructure a record by the same fields that its schema lists."""
    fields = fields_of(record)

    def take_apart_dict(value: Any) -> Any:
        found = {item.name: item.annotation for item in fields if item.name in value}
        return {**value, **{name: converter.unstructure(value[name], hint) for name, hint in found.items()}}

    def take_apart(value: Any) -> Any:
        return {item.name: converter.unstructure(getattr(value, item.attribute), item.annotation) for item in fields}

    return take_apart_dict if is_typeddict(record) else take_apart


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _union_hook(union: Any, converter: Converter) -> Callable[[Any, Any], Any]:
    """Structure a union by the member whose schema the value fits."""
    members = get_args(union)
    plain = frozenset(member for member in members if member in _PLAIN)
    choices = [_Choice(member, compile_schema(schema_of(member))) for member in members]

    def hook(value: Any, _: Any) -> Any:
        if type(value) in plain:
            return value
        for choice in choices:
            if choice.takes(value):
                return converter.structure(value, choice.annotation)
        raise ValueError(f"fits no member of {union}")

    return hook


@attrs.frozen
class _Choice:
    annotation: Any
    schema: CompiledSchema

    def takes(self, value: Any) -> bool:
        try:
            self.schema.freeze(value)
        except Mismatch:
            return False
        return True
