"""The branches of a ``oneOf``, indexed, so that thousands of branches are not walked for each of thousands of items.

A scalar is counted against all scalar branches at once. An object meets only those branches whose tag (a required
property limited to literals) allows the value that it has there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from types import NoneType
from typing import Any

from attrs import define, field

from dsh_runtime.values.literals import ScalarKey, allowed_literals, scalar_key


@define
class Branches:
    """How many scalar branches take a scalar, and which other branches have to be walked."""

    free: Counter[str] = field(factory=Counter)
    literal: Counter[tuple[str, ScalarKey]] = field(factory=Counter)
    objects: list[Any] = field(factory=list)
    tagged: dict[str, dict[ScalarKey, list[Any]]] = field(factory=dict)
    arrays: list[Any] = field(factory=list)
    anything: list[Any] = field(factory=list)

    @classmethod
    def of(cls, schema: Any) -> Branches:
        """Index the branches of one ``oneOf`` node."""
        index = cls()
        for branch in schema["oneOf"]:
            index.add(branch)
        return index

    def add(self, branch: Any) -> None:
        """Index one more branch."""
        kind = branch.get("type")
        walked = {"object": self.objects, "array": self.arrays, None: self.anything}.get(kind)
        allowed = allowed_literals(branch)
        tag = _tag(branch)
        if tag is not None:
            for key in set(map(scalar_key, tag[1])):
                self.tagged.setdefault(tag[0], {}).setdefault(key, []).append(branch)
        elif walked is not None:
            walked.append(branch)
        elif allowed is None:
            self.free[kind] += 1
        else:
            self.literal.update({(kind, scalar_key(value)) for value in allowed})

    def scalar_matches(self, value: Any) -> int:
        """Count the scalar branches that take ``value``."""
        if isinstance(value, (dict, list)):
            return 0
        key = scalar_key(value)
        return sum(self.free[kind] + self.literal[kind, key] for kind in _scalar_types(value))

    def to_walk(self, value: Any) -> list[Any]:
        """Give the branches that only a walk can decide."""
        if isinstance(value, dict):
            return [*self.objects, *self._tagged_for(value), *self.anything]
        return self.arrays + self.anything if isinstance(value, list) else self.anything

    def _tagged_for(self, value: dict[str, Any]) -> Iterator[Any]:
        for name, by_literal in self.tagged.items():
            if name in value and isinstance(value[name], (str, int, float, bool, NoneType)):
                yield from by_literal.get(scalar_key(value[name]), ())


def _tag(schema: Any) -> tuple[str, Sequence[Any]] | None:
    """Give the first required property that is limited to literals, with those literals."""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        allowed = allowed_literals(properties[name])
        if allowed is not None:
            return name, allowed
    return None


def _scalar_types(value: Any) -> tuple[str, ...]:
    if value is None:
        return ("null",)
    if isinstance(value, str):
        return ("string",)
    if isinstance(value, bool):
        return ("boolean",)
    return ("number", "integer") if isinstance(value, int) or value.is_integer() else ("number",)
