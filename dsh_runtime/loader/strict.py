"""A cattrs converter that takes a config value for what it is: ``"5"`` is no integer, ``1`` is no boolean.

cattrs builds the classes and gathers what fails; the hooks here replace those of its own that would convert. A
converter keeps the classes that it has seen, so one is made for each config: a reloaded plugin's old classes can go.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import attrs
from cattrs import BaseValidationError, ClassValidationError, Converter, IterableValidationError
from cattrs.errors import IterableValidationNote
from cattrs.gen import make_dict_structure_fn

from .revalidate import with_validators

Hook: TypeAlias = Callable[[Any, Any], Any]

_SEQUENCES: dict[object, Callable[[list[Any]], object]] = {
    list: list,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Collection: list,
    collections.abc.Iterable: list,
    set: set,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
    frozenset: frozenset,
}
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class ExpectedError(ValueError):
    """What was expected in place of the value; the message completes 'expected ...'."""


def strict_converter() -> Converter:
    """A converter that refuses what it would have to guess, and reports all that it refuses."""
    converter = Converter(detailed_validation=True, forbid_extra_keys=True)
    for kind, hook in _SCALARS.items():
        converter.register_structure_hook(kind, _scalar_hook(hook))
    converter.register_structure_hook(enum.Enum, _enum)
    converter.register_structure_hook_func(lambda kind: kind is object, lambda value, _: value)
    factories: list[tuple[Callable[[Any], bool], Callable[[Any, Converter], Hook]]] = [
        (_is_class, _class_hook),
        (lambda kind: get_origin(kind) is Literal, _literal_hook),
        (lambda kind: (get_origin(kind) or kind) in _SEQUENCES, _sequence_hook),
        (lambda kind: (get_origin(kind) or kind) is tuple, _tuple_hook),
        (lambda kind: (get_origin(kind) or kind) in _MAPPINGS, _mapping_hook),
        (lambda kind: get_origin(kind) in (Union, UnionType), _union_hook),
    ]
    for predicate, factory in factories:
        converter.register_structure_hook_factory(predicate, _bind(factory, converter))
    return converter


def _bind(factory: Callable[[Any, Converter], Hook], converter: Converter) -> Callable[[Any], Hook]:
    return lambda kind: factory(kind, converter)


def _scalar_hook(check: Callable[[Any], Any]) -> Hook:
    """cattrs hands the hook of a scalar its subclasses too, and with them enumerations such as ``(str, Enum)``."""

    def structure(value: Any, kind: Any) -> Any:
        if issubclass(kind, enum.Enum):
            return _enum(value, kind)
        checked = check(value)
        return checked if kind in _SCALARS else kind(checked)

    return structure


def _enum(value: Any, kind: type[enum.Enum]) -> Any:
    return _choice({member.value: member for member in kind})(value, kind)


def _exactly(expected: str, kind: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise ExpectedError(expected)
        return value

    return check


def _float(value: Any) -> float:
    if type(value) not in (int, float):
        raise ExpectedError("a number")
    try:
        return float(value)
    except OverflowError:
        raise ExpectedError("a number that a float can hold") from None


def _path(value: Any) -> Path:
    if not isinstance(value, (str, Path)) or "\0" in str(value):
        raise ExpectedError("a path")
    return Path(value)


_SCALARS: dict[Any, Callable[[Any], Any]] = {
    bool: _exactly("true or false", bool),
    int: _exactly("an integer", int),
    float: _float,
    str: _exactly("a string", str),
    Path: _path,
    NoneType: _exactly("nothing", NoneType),
    datetime.datetime: _exactly("a date with a time", datetime.datetime),
    datetime.date: _exactly("a date", datetime.date),
    datetime.time: _exactly("a time", datetime.time),
}


def _is_class(kind: Any) -> bool:
    origin = get_origin(kind) or kind
    return isinstance(origin, type) and (attrs.has(origin) or dataclasses.is_dataclass(origin))


def _class_hook(kind: Any, converter: Converter) -> Hook:
    build = make_dict_structure_fn(
        kind, converter, _cattrs_use_alias=True, _cattrs_forbid_extra_keys=True, _cattrs_use_linecache=False
    )

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ExpectedError("a table")
        try:
            return build(value, kind)
        except ClassValidationError as error:
            raise with_validators(error, kind, value, converter) from None

    return structure


def _literal_hook(kind: Any, _: Converter) -> Hook:
    return _choice({word.value if isinstance(word, enum.Enum) else word: word for word in get_args(kind)})


def _choice(members: Mapping[Any, Any]) -> Hook:
    expected = "one of " + ", ".join(repr(word) for word in members)

    def structure(value: Any, _: Any) -> Any:
        if isinstance(value, enum.Enum) and value in members.values():
            return value
        for word, member in members.items():
            if type(word) is type(value) and word == value:
                return member
        raise ExpectedError(expected)

    return structure


def _sequence_hook(kind: Any, converter: Converter) -> Hook:
    collect = _SEQUENCES[get_origin(kind) or kind]
    item = (get_args(kind) or (Any,))[0]

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise ExpectedError("an array")
        return collect(_each(((i, entry, item) for i, entry in enumerate(value)), kind, converter))

    return structure


def _tuple_hook(kind: Any, converter: Converter) -> Hook:
    kinds = get_args(kind) or (Any, ...)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            raise ExpectedError("an array")
        expected = (kinds[0],) * len(value) if kinds[-1] is ... else kinds
        if len(value) != len(expected):
            raise ExpectedError(f"an array of {len(expected)} items")
        items = zip(range(len(value)), value, expected, strict=True)
        return tuple(_each(items, kind, converter))

    return structure


def _mapping_hook(kind: Any, converter: Converter) -> Hook:
    key_kind, item = get_args(kind) or (Any, Any)

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ExpectedError("a table")
        keys = _each(((key, key, key_kind) for key in value), kind, converter)
        return dict(
            zip(keys, _each(((key, entry, item) for key, entry in value.items()), kind, converter), strict=True)
        )

    return structure


def _each(items: Iterable[tuple[Any, Any, Any]], kind: Any, converter: Converter) -> list[Any]:
    """Build every item; raise all that failed together, each with a note of its index."""
    built, failures = [], []
    for index, value, expected in items:
        try:
            built.append(converter.structure(value, expected))
        except Exception as error:
            error.add_note(IterableValidationNote(f"at {index!r}", index, expected))
            failures.append(error)
    if failures:
        raise IterableValidationError(f"While structuring {kind}", failures, kind)
    return built


def _union_hook(kind: Any, converter: Converter) -> Hook:
    members = get_args(kind)

    def structure(value: Any, _: Any) -> Any:
        failures = []
        for member in sorted(members, key=lambda member: member is not type(value)):
            try:
                return converter.structure(value, member)
            except Exception as error:
                if member is not NoneType:
                    failures.append(error)
        raise _clearest(failures)

    return structure


def _clearest(failures: list[Exception]) -> Exception:
    """What to tell about a value that fits no member: the failure that came closest, or all that was expected."""
    nested = [failure for failure in failures if isinstance(failure, BaseValidationError)]
    if nested:
        return min(nested, key=_count)
    expected = dict.fromkeys(str(failure) for failure in failures if isinstance(failure, ExpectedError))
    return ExpectedError(" or ".join(expected)) if expected else failures[0]


def _count(error: BaseException) -> int:
    return sum(map(_count, error.exceptions)) if isinstance(error, BaseExceptionGroup) else 1
