"""The thorough way to freeze: any depth, subclasses, shared references, and every offender with its place.

An offender becomes an ``Offence`` leaf in the tree, and every container above it is known as tainted. A walk over such
a tree can go on and still never take an offender for a value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

from attrs import define, field, frozen

from dsh_runtime.values.frozen import FrozenDict, FrozenList, freeze_dict_shell, freeze_list_shell
from dsh_runtime.values.paths import Link

_put_dict = dict.__setitem__
_append = list.append


@frozen
class Offence:
    """Stands where the original held something that JSON cannot carry."""

    message: str


#: Where an offender stands, and what is wrong with it.
Fault: TypeAlias = "tuple[Link, str]"


@define
class Survey:
    """What a thorough look at a value found, containers by the id of their frozen form."""

    tree: Any = None
    offences: list[Fault] = field(factory=list)
    tainted: dict[int, Fault] = field(factory=dict)  # the first offence at any depth below
    bad_keys: dict[int, Fault] = field(factory=dict)  # an offence among the container's own keys


def survey(value: object, *, max_depth: int | None = None, first_only: bool = False) -> Survey:
    """Freeze ``value`` whatever it holds; ``first_only`` stops at the first offender."""
    return _Surveyor(max_depth, first_only).run(value)


@define
class _Frame:
    """One container that is being frozen."""

    source: Any
    out: Any
    entries: Iterator[tuple[Any, Any]]
    link: Link
    height: int = 1
    fault: Fault | None = None


class _Surveyor:
    def __init__(self, max_depth: int | None, first_only: bool) -> None:
        self._limit = sys.maxsize if max_depth is None else max_depth
        self._reuse_frozen = max_depth is None
        self._first_only = first_only
        self._found = Survey()
        self._frames: list[_Frame] = []
        self._open: set[int] = set()
        self._done: dict[int, _Frame] = {}

    def run(self, value: object) -> Survey:
        self._found.tree = self._take(value, None)
        while self._frames and not (self._first_only and self._found.offences):
            frame = self._frames[-1]
            entry = next(frame.entries, None)
            if entry is None:
                self._close(frame)
            else:
                self._add(frame, *entry)
        return self._found

    def _add(self, frame: _Frame, key: Any, item: Any) -> None:
        if type(frame.out) is FrozenList:
            _append(frame.out, self._take(item, (frame.link, key)))
            return
        name, fault = _plain_key(key, frame.out)
        if fault is not None:
            self._blame(frame.link, fault)
            self._found.bad_keys.setdefault(id(frame.out), (frame.link, fault))
        else:
            _put_dict(frame.out, name, self._take(item, (frame.link, name)))

    def _take(self, item: Any, link: Link) -> Any:
        """Give the frozen form of one item; a container comes back empty, with a frame that will fill it."""
        if not isinstance(item, (dict, list, tuple)):
            plain, fault = _plain_scalar(item)
            return plain if fault is None else self._blame(link, fault)
        if self._reuse_frozen and type(item) in (FrozenDict, FrozenList):
            return item
        if id(item) in self._open:
            return self._blame(link, "contains itself, which JSON cannot carry; break the cycle")
        known = self._done.get(id(item))
        room = self._limit - len(self._frames)
        if (known.height if known else 1) > room:
            return self._blame(link, f"is nested more than {self._limit} levels deep; flatten the value")
        return self._reuse(known) if known else self._enter(item, link)

    def _enter(self, item: Any, link: Link) -> Any:
        out: Any
        if isinstance(item, dict):
            out, entries = freeze_dict_shell({}), iter(list(dict.items(item)))
        else:
            stored = list.__iter__(item) if isinstance(item, list) else tuple.__iter__(item)
            out, entries = freeze_list_shell(()), iter(list(enumerate(stored)))
        self._frames.append(_Frame(item, out, entries, link))
        self._open.add(id(item))
        return out

    def _reuse(self, known: _Frame) -> Any:
        if self._frames:
            self._absorb(self._frames[-1], known)
        return known.out

    def _close(self, frame: _Frame) -> None:
        self._frames.pop()
        self._open.discard(id(frame.source))
        self._done[id(frame.source)] = frame  # keeps the source alive, so that its id stays its own
        if frame.fault is not None:
            self._found.tainted[id(frame.out)] = frame.fault
        if self._frames:
            self._absorb(self._frames[-1], frame)

    @staticmethod
    def _absorb(parent: _Frame, child: _Frame) -> None:
        parent.height = max(parent.height, child.height + 1)
        parent.fault = parent.fault or child.fault

    def _blame(self, link: Link, message: str) -> Offence:
        self._found.offences.append((link, message))
        if self._frames:
            self._frames[-1].fault = self._frames[-1].fault or (link, message)
        return Offence(message)


def _plain_key(key: Any, taken: FrozenDict) -> tuple[str, str | None]:
    if not isinstance(key, str):
        return "", f"has a key of type {type(key).__name__}, and JSON has only string keys; convert it"
    name = str.__str__(key)
    if not _encodes(name):
        return "", "has a key with a lone surrogate, which JSON cannot carry; remove it"
    if type(key) is not str and name in taken:
        return "", "has two keys with the same text; keep one"
    return name, None


def _plain_scalar(item: Any) -> tuple[Any, str | None]:
    if type(item) is Offence:
        return None, item.message
    if item is None or item is True or item is False:
        return item, None
    if isinstance(item, str):
        text = str.__str__(item)
        fault = None if _encodes(text) else "is text with a lone surrogate, which JSON cannot carry; remove it"
        return text, fault
    if isinstance(item, int):
        number = int.__int__(item)
        return number, None if _prints(number) else "is an integer too long for JSON to print; send it as a string"
    if isinstance(item, float):
        real = float.__float__(item)
        return real, None if real - real == 0 else f"is {real}, which JSON cannot carry; use null or a string"
    return None, f"is of type {type(item).__name__}, which JSON cannot carry; convert it"


def _encodes(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _prints(number: int) -> bool:
    limit = sys.get_int_max_str_digits()
    return limit == 0 or number.bit_length() <= 3 * limit or abs(number) < 10**limit
