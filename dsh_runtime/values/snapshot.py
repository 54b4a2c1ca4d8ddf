"""``snapshot_json``: detach a value and freeze it, or say where it is no lossless JSON.

Strategy: the quick way below knows exact built-in types to a moderate depth, and gives up with ``Unusual`` on anything
else (subclasses, deep nesting, offenders). The thorough way in ``survey`` then freezes or refuses; it alone decides
what is no JSON. Both read only what built-in containers store: no code of a foreign class ever runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, cast

from dsh_hookspecs import JsonValue, JsonValueError

from dsh_runtime.values.frozen import FrozenDict, FrozenList, OpenDict, OpenList, deeper_than
from dsh_runtime.values.paths import Report
from dsh_runtime.values.survey import Survey, survey

QUICK_DEPTH = 100
#: ``sys.set_int_max_str_digits`` accepts no limit below 640 digits, so smaller integers always print.
ALWAYS_PRINTS = 10**640
_LOWEST = -ALWAYS_PRINTS
_SMALL = 8  # up to this many items one loop is quicker than a pass per question
RECHECK = 0  # memo key (no object has this id): a container was reused at a depth that nobody counted

_NoneType = type(None)
_CONSTANTS = frozenset((bool, _NoneType))
_STRINGS = {str}
_INTEGERS = {int}
_FLOATS = {float}


class Unusual(Exception):  # noqa: N818 - control flow
    """The quick way does not know what to do with a value; the thorough way will."""


def snapshot_json(value: object, *, max_depth: int | None = None, path: str = "value") -> JsonValue:
    """Detach and deep-freeze ``value``, or raise ``JsonValueError`` with the path of the first offender.

    Accepted are dict, list, tuple (as an array), str, int, float, bool, None, frozen values, and subclasses of them by
    the plain value that they hold. ``max_depth`` limits how deep containers may nest. An already frozen value is
    returned as it is.
    """
    memo: dict[int, Any] = {}
    room = QUICK_DEPTH if max_depth is None or max_depth > QUICK_DEPTH else max_depth
    try:
        frozen: JsonValue = freeze_dict(value, room, memo) if type(value) is dict else freeze(value, room, memo)
        if max_depth is None or RECHECK not in memo or not deeper_than(frozen, max_depth):
            return frozen
    except (Unusual, RecursionError):
        pass
    return _thorough(value, max_depth, path)


def look_through(value: object) -> Survey:
    """What ``survey`` finds; a value that the quick way takes has nothing to be found."""
    try:
        return Survey(freeze(value, QUICK_DEPTH, {}))
    except (Unusual, RecursionError):
        return survey(value)


def _thorough(value: object, max_depth: int | None, path: str) -> JsonValue:
    outcome = survey(value, max_depth=max_depth, first_only=True)
    for link, message in outcome.offences:
        report = Report(path)
        report.add(link, message)
        raise JsonValueError(f"{report.violations[0]}", report.violations)
    return cast(JsonValue, outcome.tree)


def freeze(value: Any, room: int, memo: dict[int, Any]) -> Any:
    """Freeze ``value`` the quick way, with ``room`` for that many levels of containers."""
    kind = type(value)
    if kind is dict:
        return freeze_dict(value, room, memo)
    if kind is str:
        return value if value.isascii() else clean(value)
    if kind is list or kind is tuple:
        return freeze_list(value, room, memo)
    if kind in _CONSTANTS:
        return value
    if kind is int:
        return value if _LOWEST < value < ALWAYS_PRINTS else _give_up()
    if kind is float:
        return value if value - value == 0 else _give_up()
    if kind is FrozenDict or kind is FrozenList:
        memo[RECHECK] = True
        return value
    raise Unusual


def freeze_dict(source: dict[Any, Any], room: int, memo: dict[int, Any]) -> FrozenDict:
    """Freeze a plain dict. It is copied first: what another thread does to the original is then no concern."""
    if memo and id(source) in memo:
        return cast(FrozenDict, _again(source, memo))
    if room <= 0:
        raise Unusual
    out: Any = OpenDict(source)
    nested = False
    for key, item in out.items():
        if type(key) is not str:
            raise Unusual
        if not key.isascii():
            clean(key)
        kind = type(item)
        if kind is str:
            if not item.isascii():
                clean(item)
        elif kind is int:
            if not _LOWEST < item < ALWAYS_PRINTS:
                raise Unusual
        elif kind is float:
            if item - item != 0:
                raise Unusual
        elif item is None or kind is bool:
            pass
        elif kind is dict or kind is list:
            nested = True
            out[key] = (freeze_dict if kind is dict else freeze_list)(item, room - 1, memo)
        else:
            out[key] = freeze(item, room - 1, memo)
    out.__class__ = FrozenDict
    if nested or len(out) > _SMALL:
        memo[id(source)] = (source, out)
    return out  # type: ignore[no-any-return]


def freeze_list(source: list[Any] | tuple[Any, ...], room: int, memo: dict[int, Any]) -> FrozenList:
    """Freeze a plain list or tuple."""
    if memo and id(source) in memo:
        return cast(FrozenList, _again(source, memo))
    if room <= 0:
        raise Unusual
    out: Any = OpenList(source)
    if len(out) > _SMALL and plain_scalars(out):
        out.__class__ = FrozenList
        memo[id(source)] = (source, out)
        return out  # type: ignore[no-any-return]
    nested = False
    for index, item in enumerate(out):
        kind = type(item)
        if kind is str:
            if not item.isascii():
                clean(item)
        elif kind is int:
            if not _LOWEST < item < ALWAYS_PRINTS:
                raise Unusual
        elif kind is float:
            if item - item != 0:
                raise Unusual
        elif item is None or kind is bool:
            pass
        elif kind is dict or kind is list:
            nested = True
            out[index] = (freeze_dict if kind is dict else freeze_list)(item, room - 1, memo)
        else:
            out[index] = freeze(item, room - 1, memo)
    out.__class__ = FrozenList
    if nested or len(out) > _SMALL:
        memo[id(source)] = (source, out)
    return out  # type: ignore[no-any-return]


def _again(source: Any, memo: dict[int, Any]) -> Any:
    """Give the frozen form of a container that was met before.

    Small containers of scalars are not remembered: freezing one anew costs no more. The memo holds the original, so
    that its id stays its own.
    """
    memo[RECHECK] = True
    return memo[id(source)][1]


def plain_scalars(items: list[Any]) -> bool:
    """Answer at C speed whether a list holds plain scalars of one sort; False means "look closer"."""
    kinds = set(map(type, items))
    if kinds == _STRINGS:
        text = "".join(items)
        return text.isascii() or clean(text) is text
    if kinds == _INTEGERS:
        return bool(min(items) > _LOWEST and max(items) < ALWAYS_PRINTS)
    if kinds == _FLOATS:
        return all(map(isfinite, items))
    return kinds <= _CONSTANTS


def clean(text: str) -> str:
    """Give back text without lone surrogates; give up on any other."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise Unusual from None
    return text


def all_text(keys: Iterable[Any]) -> None:
    """Give up unless every key is a plain string."""
    for key in keys:
        if type(key) is not str:
            raise Unusual


def _give_up() -> Any:
    raise Unusual
