"""Find every field whose validator refuses it, where attrs stops at the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_origin

import attrs
from cattrs import ClassValidationError, Converter
from cattrs.errors import AttributeValidationNote, ForbiddenExtraKeysError


def with_validators(
    error: ClassValidationError, kind: Any, value: Mapping[str, Any], converter: Converter
) -> Exception:
    """``error``, with the refusals of all the validators that could be asked in place of the one that was first."""
    cls = get_origin(kind) or kind
    if not attrs.has(cls):
        return error
    instance = object.__new__(cls)
    try:
        complete = _fill(instance, attrs.fields(cls), value, converter)
        refusals = list(_refusals(instance, attrs.fields(cls), complete))
    except Exception:
        return error
    found_before = _from_building(error)
    return ClassValidationError(error.message, [*found_before, *refusals], error.cl) if refusals else error


def _from_building(error: ClassValidationError) -> list[Exception]:
    """The failures that arose before the class was called."""
    noted, unnoted = error.group_exceptions()
    return [failure for failure, _ in noted] + [f for f in unnoted if isinstance(f, ForbiddenExtraKeysError)]


def _fill(instance: Any, fields: Any, value: Mapping[str, Any], converter: Converter) -> bool:
    """Set every field that has a value; say whether all have."""
    complete = True
    for field in fields:
        try:
            object.__setattr__(instance, field.name, _value_of(field, value, instance, converter))
        except Exception:
            complete = False
    return complete


def _refusals(instance: Any, fields: Any, complete: bool) -> Iterator[Exception]:
    for field in fields:
        if field.validator is None or not hasattr(instance, field.name):
            continue
        try:
            field.validator(instance, field, getattr(instance, field.name))
        except Exception as refusal:
            if complete or not isinstance(refusal, AttributeError):  # it may have looked for a field that is not there
                refusal.add_note(AttributeValidationNote(f"at {field.name}", field.name, field.type))
                yield refusal


def _value_of(field: attrs.Attribute[Any], value: Mapping[str, Any], instance: Any, converter: Converter) -> Any:
    default: Any = field.default
    if field.init and field.alias in value:
        built = converter.structure(value[str(field.alias)], field.type or Any)
    elif default is attrs.NOTHING:
        raise LookupError(field.name)
    elif hasattr(default, "takes_self"):
        built = default.factory(instance) if default.takes_self else default.factory()
    else:
        built = default
    convert: Any = field.converter
    return convert(built) if convert is not None else built
