"""Freezes what has just been parsed from a frame: it is a tree of plain values that nobody else holds.

So there is nothing to be remembered, and less to be looked at than in a value of unknown origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
        return _filled(OpenDict(value), value.items(), FrozenDict, room)
    if kind is list:
        return _filled(OpenList(value), enumerate(value), FrozenList, room)
    if (kind is int and not _LOWEST < value < ALWAYS_PRINTS) or (kind is float and value - value != 0):
        raise Unusual
    return value


def _filled(out: Any, members: Iterable[tuple[Any, Any]], kind: type, room: int) -> Any:
    """A copy with frozen members, made final."""
    if room <= 0:
        raise Unusual
    for place, member in members:
        if type(member) is not str:
            frozen = _frozen(member, room - 1)
            if frozen is not member:
                out[place] = frozen
    out.__class__ = kind
    return out
