"""The branches of a ``oneOf``, indexed: a scalar is counted against all scalar branches at once.

Without it, thousands of branches times thousands of items would be visited one by one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from attrs import define, field

from dsh_runtime.values.literals import ScalarKey, allowed_literals, scalar_key


@define
class Branches:
    """How many scalar branches take a scalar, and which other branches have to be walked."""

    free: Counter[str] = field(factory=Counter)
    literal: Counter[tuple[str, ScalarKey]] = field(factory=Counter)
    objects: list[Any] = field(factory=list)
    arrays: list[Any] = field(factory=list)
    anything: list[Any] = field(factory=list)

    @classmethod
    def of(cls, schema: Any) -> Branches:
        """Index the branches of one ``oneOf`` node."""
        index = cls()
        for branch in schema["oneOf"]:
            index._add(branch)
        return index

    def _add(self, branch: Any) -> None:
        kind = branch.get("type")
        walked = {"object": self.objects, "array": self.arrays, None: self.anything}.get(kind)
        allowed = allowed_literals(branch)
        if walked is not None:
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
            return self.objects + self.anything
        return self.arrays + self.anything if isinstance(value, list) else self.anything


def _scalar_types(value: Any) -> tuple[str, ...]:
    if value is None:
        return ("null",)
    if isinstance(value, str):
        return ("string",)
    if isinstance(value, bool):
        return ("boolean",)
    return ("number", "integer") if isinstance(value, int) or value.is_integer() else ("number",)
