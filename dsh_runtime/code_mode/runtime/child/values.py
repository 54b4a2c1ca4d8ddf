"""Finds what of a program's values is no JSON, before it is sent: the host would end the program for it."""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator
from itertools import chain
from typing import Any

from .wire import MAX_DEPTH, cost, max_cost

_SCALARS = frozenset((str, int, float, bool, type(None)))
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False)

_FEW = 20
_PLAIN = _SCALARS | {dict, list, tuple}

#: Where a container stands: the place of the one around it, and its key in there.
Place = tuple[Any, Any]


class NotJsonError(TypeError):
    """A value that JSON cannot carry and give back."""


# So that a message calls it by its name alone: a program has no other way to it.
NotJsonError.__module__ = "builtins"


def encode(message: list[Any], value: Any, what: str, max_frame: int) -> bytes:
    """``message`` with ``value`` as its last item, as the body of a frame; ``what`` names the value in errors."""
    try:
        if _is_small(value):
            body = _ENCODER.encode([*message, value]).encode()
        else:
            with collection_paused():
                check(value, what, max_frame)
                body = _ENCODER.encode([*message, value]).encode()
    except UnicodeEncodeError:
        raise NotJsonError(f"{what} holds a lone surrogate, which is no character; replace it") from None
    except ValueError as error:  # NaN, infinities, integers too long to print
        raise NotJsonError(f"{what} is no JSON: {error}") from None
    if len(body) > max_frame or (len(body) > max_frame // 64 and cost(body) > max_cost(max_frame)):
        raise NotJsonError(f"{what} is too large: {len(body):,} bytes as JSON; at most {max_frame:,} can be passed on")
    return body


@contextlib.contextmanager
def collection_paused() -> Iterator[None]:
    """Keep the garbage collector from looking through a large value again and again while it is taken apart."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _is_small(value: Any) -> bool:
    """Whether a value is a scalar, or an object of a few: there is nothing to be found in it."""
    kind = type(value)
    if kind is dict and len(value) < _FEW:
        return all(type(key) is str and type(item) in _SCALARS for key, item in value.items())
    return kind in _SCALARS


def check(value: Any, what: str, max_items: int) -> None:
    """Raise for the first thing in ``value`` that is no JSON, however deep it stands."""
    if type(value) not in _SCALARS and not _is_plain(value, max_items):
        _walk(value, what, max_items)


def _is_plain(value: Any, max_items: int) -> bool:
    """Whether a value is made of nothing but plain JSON types: looked at level by level, which costs little a value."""
    level, count = [value], 0
    for _ in range(MAX_DEPTH + 1):
        kinds = set(map(type, level))
        if kinds <= _SCALARS:
            return True
        if not kinds <= _PLAIN:
            return False
        mappings = [item for item in level if type(item) is dict]
        if not set(map(type, chain.from_iterable(mappings))) <= {str}:
            return False
        arrays = [item for item in level if type(item) is list or type(item) is tuple]
        level = [*chain.from_iterable(map(dict.values, mappings)), *chain.from_iterable(arrays)]
        count += len(level)
        if count > max_items:
            return False
    return False


def _walk(value: Any, what: str, max_items: int) -> None:
    """The same at leisure: takes subclasses of plain types too, and can say where the first offender stands."""
    waiting: list[tuple[Any, Place | None, int]] = [(value, None, 1)]
    count = 0
    while waiting:
        item, place, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise NotJsonError(f"{what} nests more than {MAX_DEPTH} deep, or holds itself")
        if isinstance(item, dict):
            _check_keys(item, what, place)
            members: Any = item.items()
            kinds = set(map(type, item.values()))
        elif isinstance(item, (list, tuple)):
            members = enumerate(item)
            kinds = set(map(type, item))
        elif isinstance(item, (str, int, float)):
            continue
        else:
            raise NotJsonError(f"{what} is no JSON: {_path(place)} is {_named(item)}")
        count += len(item) + 1
        if count > max_items:
            raise NotJsonError(f"{what} is too large: more than {max_items:,} values, or it holds itself")
        if not kinds <= _SCALARS:
            waiting += [(inner, (place, key), depth + 1) for key, inner in members if type(inner) not in _SCALARS]


def _check_keys(item: dict[Any, Any], what: str, place: Place | None) -> None:
    if item and set(map(type, item)) != {str}:
        for key in item:
            if not isinstance(key, str):
                raise NotJsonError(f"{what} is no JSON: {_path(place)} has the key {_named(key)}; keys are strings")


def _named(item: Any) -> str:
    text = object.__repr__(item) if not isinstance(item, (int, float, bytes, tuple)) else repr(item)
    return f"{text[:80]}, of type {type(item).__name__}"


def _path(place: Place | None) -> str:
    """Where something stands, written as a program would reach it."""
    keys = []
    while place is not None:
        place, key = place
        keys.append(f"[{key!r:.80}]")
    shown = keys[::-1] if len(keys) <= 12 else [*keys[:-7:-1], "…", *keys[5::-1]]
    return "it" if not keys else "it" + "".join(shown)
