"""Freezes what has just been parsed from a frame: it is a tree of plain values that nobody else holds.

So there is nothing to be remembered, and less to be looked at than in a value of unknown origin.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dsh_hookspecs import JsonValue

from dsh_runtime.values.frozen import FrozenDict, FrozenList, OpenDict, OpenList
from dsh_runtime.values.snapshot import ALWAYS_PRINTS, QUICK_DEPTH, Unusual, snapshot_json

#: What could stand for half a character; text that is UTF-8 has none otherwise.
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LOWEST: Final = -ALWAYS_PRINTS


def freeze_parsed(value: object, body: bytes, max_depth: int) -> JsonValue:
    """Freeze a value that was parsed from ``body``, or raise ``JsonValueError``."""
    if _SURROGATE.search(body) is None:
        try:
            frozen: JsonValue = _frozen(value, min(QUICK_DEPTH, max_depth))
        except Unusual:
            pass
        else:
            return frozen
    return snapshot_json(value, max_depth=max_depth)


def _frozen(value: Any, room: int) -> Any:
    kind = type(value)
    if kind is dict:
        return _frozen_dict(value, room)
    if kind is list:
        return _frozen_list(value, room)
    if (kind is int and not _LOWEST < value < ALWAYS_PRINTS) or (kind is float and value - value != 0):
        raise Unusual
    return value


def _frozen_dict(source: dict[str, Any], room: int) -> FrozenDict:
    if room <= 0:
        raise Unusual
    out: Any = OpenDict(source)
    for key, item in source.items():
        kind = type(item)
        if kind is str:
            continue
        if kind is dict:
            out[key] = _frozen_dict(item, room - 1)
        elif kind is list:
            out[key] = _frozen_list(item, room - 1)
        elif (kind is int and not _LOWEST < item < ALWAYS_PRINTS) or (kind is float and item - item != 0):
            raise Unusual
    out.__class__ = FrozenDict
    return out  # type: ignore[no-any-return]


def _frozen_list(source: list[Any], room: int) -> FrozenList:
    if room <= 0:
        raise Unusual
    out: Any = OpenList(source)
    for index, item in enumerate(source):
        kind = type(item)
        if kind is str:
            continue
        if kind is dict:
            out[index] = _frozen_dict(item, room - 1)
        elif kind is list:
            out[index] = _frozen_list(item, room - 1)
        elif (kind is int and not _LOWEST < item < ALWAYS_PRINTS) or (kind is float and item - item != 0):
            raise Unusual
    out.__class__ = FrozenList
    return out  # type: ignore[no-any-return]
