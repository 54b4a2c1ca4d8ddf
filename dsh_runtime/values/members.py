"""What annotations demand of the values of a ``dict[str, T]``, which the enforced subset has no word for.

An annotation is first described in full: as a node of the subset, except that a dict with typed values has a node as
its ``additionalProperties``. Published is the same with open objects in their place; what they demand is kept beside
it and checked after the published schema. How deep a check goes is up to the annotation, never to the value. A value
of another shape is passed over: the published schema has refused it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from dsh_runtime.values.compiled import CompiledSchema, Demand, compile_schema
from dsh_runtime.values.paths import Link, Report
from dsh_runtime.values.walk import MOST_VIOLATIONS, explain_at

#: Combines the nodes of a union into one.
Union: TypeAlias = Callable[[list[dict[str, Any]]], dict[str, Any]]


class DemandingSchema(dict[str, Any]):
    """A published schema that carries its demand to where it is compiled."""

    __slots__ = ("demand",)

    def __init__(self, schema: dict[str, Any], demand: Demand) -> None:
        super().__init__(schema)
        self.demand = demand


def published(full: dict[str, Any], union: Union) -> dict[str, Any]:
    """Give what is published of a full description, with its demand if it has one."""
    demand = _demand(full, union)
    return full if demand is None else DemandingSchema(_published(full, union), demand)


def _published(full: dict[str, Any], union: Union) -> dict[str, Any]:
    node = {key: value for key, value in full.items() if key != "additionalProperties"}
    if "properties" in node:
        node["properties"] = {name: _published(child, union) for name, child in node["properties"].items()}
    if "items" in node:
        node["items"] = _published(node["items"], union)
    if "oneOf" in node:
        said = {key: value for key, value in node.items() if key != "oneOf"}
        return {**union([_published(branch, union) for branch in node["oneOf"]]), **said}
    return node


def _demand(full: dict[str, Any], union: Union) -> Demand | None:
    if "oneOf" in full:
        branches = [compile_schema(published(branch, union)) for branch in full["oneOf"]]
        return _AnyOf(branches) if any(branch.demand for branch in branches) else None
    if "additionalProperties" in full:
        return _Values.of(full["additionalProperties"], union)
    if "items" in full:
        items = _demand(full["items"], union)
        return items and _Items(items)
    found = {name: _demand(child, union) for name, child in full.get("properties", {}).items()}
    properties = {name: demand for name, demand in found.items() if demand is not None}
    return _Properties(properties) if properties else None


@attrs.frozen
class _Properties:
    properties: dict[str, Demand]

    def met(self, value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        return all(demand.met(value[name]) for name, demand in self.properties.items() if name in value)

    def explain(self, value: Any, link: Link, report: Report) -> None:
        if isinstance(value, dict):
            for name, demand in self.properties.items():
                if name in value:
                    demand.explain(value[name], (link, name), report)


@attrs.frozen
class _Items:
    items: Demand

    def met(self, value: Any) -> bool:
        return not isinstance(value, list) or all(map(self.items.met, value))

    def explain(self, value: Any, link: Link, report: Report) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                self.items.explain(item, (link, index), report)


@attrs.frozen
class _Values:
    """Every value of an object fits one schema; asked of all of them in one pass, as of the items of an array."""

    schema: dict[str, Any]
    together: CompiledSchema
    demand: Demand | None

    @classmethod
    def of(cls, full: dict[str, Any], union: Union) -> _Values:
        schema = published(full, union)
        array = published({"type": "array", "items": full}, union)
        return cls(schema, compile_schema(array), getattr(schema, "demand", None))

    def met(self, value: Any) -> bool:
        return not isinstance(value, dict) or self.together.takes(list(value.values()))

    def explain(self, value: Any, link: Link, report: Report) -> None:
        if not isinstance(value, dict):
            return
        for name, item in value.items():
            if len(report.violations) >= MOST_VIOLATIONS:
                return
            explain_at(self.schema, item, (link, name), report)
            if self.demand is not None:
                self.demand.explain(item, (link, name), report)


@attrs.frozen
class _AnyOf:
    branches: list[CompiledSchema]

    def met(self, value: Any) -> bool:
        return any(branch.takes(value) for branch in self.branches)

    def explain(self, value: Any, link: Link, report: Report) -> None:
        if self.met(value):
            return
        demands = [branch.demand for branch in self.branches if branch.shape().takes(value)]
        if len(demands) == 1 and demands[0] is not None:
            demands[0].explain(value, link, report)
        elif demands:
            report.add(link, "holds values that fit no member of its union")
