"""Where two JSON values differ, for a person who reads why a test has failed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

#: How many differences a message names, and how much of a value.
_MOST: Final = 8
_MAX_TEXT: Final = 500
_ABSENT: Final = object()


def differences(expected: Any, got: Any, path: str = "value") -> list[str]:
    """A line for each place where ``got`` is not what was expected, the first few of them."""
    found = list(islice(_differences(expected, got, path), _MOST + 1))
    return [*found[:_MOST], "and more"] if len(found) > _MOST else found


def _differences(expected: Any, got: Any, path: str) -> Iterator[str]:
    if _is_object(expected) and _is_object(got):
        for key in dict.fromkeys((*expected, *got)):
            yield from _differences(expected.get(key, _ABSENT), got.get(key, _ABSENT), f"{path}.{key}")
    elif _is_array(expected) and _is_array(got):
        for index in range(max(len(expected), len(got))):
            pair = (list(islice(side, index, index + 1)) or [_ABSENT] for side in (expected, got))
            (one,), (other,) = pair
            yield from _differences(one, other, f"{path}[{index}]")
    elif not same(expected, got):
        yield f"{path}: expected {shown(expected)}, got {shown(got)}"


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; ``True`` is no number."""
    if isinstance(one, bool) is not isinstance(other, bool):
        return False
    if _is_object(one) and _is_object(other):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if _is_array(one) and _is_array(other):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def shown(value: Any) -> str:
    """A value as JSON where it is any, cut where it is long."""
    if value is _ABSENT:
        return "nothing"
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_array(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
