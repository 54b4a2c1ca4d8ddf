"""A rule of the gate, and how far it covers a call."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import frozen
from dsh_hookspecs import JsonValue

from dsh_plugin_permission_gate._globs import NONE, PART, WHOLE, Cover, Globs, ValueGlobs, together
from dsh_plugin_permission_gate._select import ArgumentPath

Action: TypeAlias = Literal["allow", "deny", "ask"]


@frozen
class Condition:
    """What a rule wants to see at one place in the arguments."""

    path: ArgumentPath
    globs: ValueGlobs

    def cover(self, arguments: JsonValue) -> Cover:
        """How far the values at the path are covered; not at all where there are none."""
        values = self.path.values(arguments)
        return self.globs.cover(values[0]) if len(values) == 1 else together(map(self.globs.cover, values))


@frozen
class Rule:
    """An action for the calls whose tool and arguments fit; ``number`` is its place in the config, from 1."""

    number: int
    action: Action
    tools: Globs
    conditions: tuple[Condition, ...] = ()
    reason: str | None = None

    def cover(self, tool: str, arguments: JsonValue) -> Cover:
        """How far a call is covered: as far as the condition that fits it least."""
        if not self.tools.match(tool):
            return NONE
        least = WHOLE
        for condition in self.conditions:
            cover = condition.cover(arguments)
            if cover is NONE:
                return cover
            if cover is PART:
                least = cover
        return least


@frozen
class Policy:
    """Rules in order, and the action where none of them decides."""

    rules: tuple[Rule, ...] = ()
    default: Action = "ask"
