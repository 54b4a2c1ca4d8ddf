"""Argument paths: which values of a call's arguments a rule looks at.

A path is a row of steps with dots between: a member's name or an item's index, ``*`` for every member or item, and, as
the last step, ``**`` for every string at or below the place, the names of members included. A backslash makes a dot,
a star or a backslash part of a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias, TypeGuard

from attrs import frozen
from dsh_hookspecs import JsonValue

_STEP: Final = re.compile(r"((?:[^.\\]|\\[.*\\])+)(?:\.(?!\Z)|\Z)")
_ESCAPE: Final = re.compile(r"\\(.)")


#: Longer paths are refused, as no tool has arguments that deep.
MAX_PATH: Final = 1000


class PathError(ValueError):
    """A text that is no argument path."""


class Wild(Enum):
    """A step that stands for more than one place."""

    EACH = "*"
    BELOW = "**"


Step: TypeAlias = str | Wild


@frozen
class ArgumentPath:
    """Where in the arguments to look."""

    source: str
    steps: tuple[Step, ...]

    def values(self, arguments: JsonValue) -> Sequence[JsonValue]:
        """Every value at this path; none where the arguments do not have it."""
        if isinstance(arguments, dict) and len(self.steps) == 1 and isinstance(name := self.steps[0], str):
            return [arguments[name]] if name in arguments else []
        found: list[JsonValue] = [arguments]
        for step in self.steps:
            found = [inner for value in found for inner in _take(step, value)]
        return found


def parse_path(source: str) -> ArgumentPath:
    """Read an argument path; raise :class:`PathError` for what is none."""
    if len(source) > MAX_PATH:
        raise PathError(
            f"an argument path has at most {MAX_PATH} characters, this one has {len(source)}: {source[:40]!r}..."
        )
    steps = tuple(_wild_or_name(step) for step in _split(source))
    if Wild.BELOW in steps[:-1]:
        raise PathError(f"argument path {source!r} goes on behind '**', which is always the last step; use '*' there")
    return ArgumentPath(source, steps)


def _split(source: str) -> Iterator[str]:
    position = 0
    while position < len(source) or not source:
        found = _STEP.match(source, position)
        if found is None:
            raise PathError(
                f"argument path {source!r} is no row of names with dots between;"
                " a dot, star or backslash within a name is written '\\.', '\\*' or '\\\\'"
            )
        yield found[1]
        position = found.end()


def _wild_or_name(step: str) -> Step:
    return Wild(step) if step in ("*", "**") else _ESCAPE.sub(r"\1", step)


def _take(step: Step, value: JsonValue) -> Sequence[JsonValue]:
    if step is Wild.BELOW:
        return _strings(value)
    if step is Wild.EACH:
        return _members(value)
    if _is_object(value):
        return [value[step]] if step in value else []
    if _is_array(value) and step.isdecimal() and step.isascii() and int(step) < len(value):
        return [value[int(step)]]
    return []


def _members(value: JsonValue) -> Sequence[JsonValue]:
    if _is_object(value):
        return list(value.values())
    return value if _is_array(value) else []


def _strings(value: JsonValue) -> Sequence[str]:
    """Every string of a value, however deep it lies, and every name of a member."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.append(value)
        elif _is_object(value):
            found += value
            waiting += value.values()
        elif _is_array(value):
            waiting += value
    return found


def _is_object(value: JsonValue) -> TypeGuard[Mapping[str, JsonValue]]:
    return isinstance(value, (dict, Mapping))


def _is_array(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, (list, Sequence)) and not isinstance(value, str)
