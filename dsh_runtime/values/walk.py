"""Checks a value against a schema and explains every violation, at any depth and in bounded time.

Strategy: the value is first made into a tree of frozen containers and ``Offence`` leaves, so that nothing foreign is
met again. Each container is visited by a small generator; one loop drives them all, so depth costs memory and no
recursion. The branches of ``oneOf`` are asked for a verdict alone, and each verdict is kept by schema node and value
node: neither nests of ``oneOf`` nor shared nodes can multiply the work.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from dsh_hookspecs import JsonValueError, Violation

from dsh_runtime.values.branches import Branches
from dsh_runtime.values.literals import allowed_literals, scalar_key, show_literal, show_literals
from dsh_runtime.values.paths import Link, Report, kind_of
from dsh_runtime.values.snapshot import snapshot_json
from dsh_runtime.values.subset import LITERAL_TESTS
from dsh_runtime.values.survey import Fault, Offence, survey

#: A pair of schema node and value node, by their ids: both live as long as the walk.
Pair: TypeAlias = "tuple[int, int]"
Steps: TypeAlias = "Generator[Task, bool, bool]"
Task: TypeAlias = "tuple[Pair, Steps]"

MOST_VIOLATIONS = 10_000
_MOST_BRANCHES = 200_000  # branches walked for one value before it is refused as too costly to decide
_ARTICLES = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "number": "a number",
    "integer": "an integer",
    "boolean": "a boolean",
    "null": "null",
}


def validate_json_schema_value(schema: Any, value: object, path: str = "value") -> tuple[Violation, ...]:
    """List every violation of ``value`` against a supported ``schema``; an empty tuple means that it fits."""
    return explain(schema, value, Report(path))


def explain(schema: Any, value: object, report: Report, max_depth: int | None = None) -> tuple[Violation, ...]:
    """List every violation, with paths as ``report`` shows them."""
    tree, tainted = as_tree(value, max_depth)
    Walk(tainted, report).run(schema, tree)
    return tuple(report.violations)


def explain_at(schema: Any, frozen: Any, link: Link, report: Report) -> None:
    """Note every violation of a frozen value that stands at ``link`` in a larger one."""
    Walk({}, report).run(schema, frozen, link)


def fits(schema: Any, frozen: Any) -> bool:
    """Tell whether a frozen value fits a supported schema."""
    return Walk({}, None).run(schema, frozen)


def as_tree(value: object, max_depth: int | None) -> tuple[Any, dict[int, Fault]]:
    """Make a value into frozen containers, and name the containers that hold something that is no JSON."""
    try:
        return snapshot_json(value, max_depth=max_depth), {}
    except JsonValueError:
        found = survey(value, max_depth=max_depth)
        return found.tree, found.tainted


class _Full(Exception):  # noqa: N818 - control flow
    """Enough violations are listed."""


class Walk:
    """One walk of one value; without a report it stops at the first thing that does not fit."""

    def __init__(self, tainted: dict[int, Fault], report: Report | None) -> None:
        self._tainted = tainted
        self._report = report
        self._verdicts: dict[Pair, bool] = {}
        self._walked = 0
        self._branches: dict[int, Branches] = {}
        self._literals: dict[int, tuple[frozenset[Any], str]] = {}

    def run(self, schema: Any, tree: Any, link: Link = None) -> bool:
        try:
            return self._drive(self._visit(schema, tree, link, self._report is not None))
        except _Full:
            return False

    def _drive(self, first: bool | Task) -> bool:
        if isinstance(first, bool):
            return first
        tasks, verdict = [first], False
        fresh = True
        while tasks:
            pair, steps = tasks[-1]
            try:
                tasks.append(next(steps) if fresh else steps.send(verdict))
                fresh = True
            except StopIteration as stop:
                tasks.pop()
                verdict = self._verdicts[pair] = bool(stop.value)
                fresh = False
        return verdict

    def _visit(self, schema: Any, value: Any, link: Link, aloud: bool) -> bool | Task:
        """Give the verdict on one node at once where that is easy, else a task that will find it."""
        if type(value) is Offence:
            return self._fail(link, value.message, aloud)
        steps = self._steps(schema, value)
        if steps is None:
            return self._scalar(schema, value, link, aloud)
        pair = id(schema), id(value)
        known = self._verdicts.get(pair)
        if known is None or (aloud and not known):
            return pair, steps(schema, value, link, aloud)
        return known

    def _steps(self, schema: Any, value: Any) -> Callable[[Any, Any, Link, bool], Steps] | None:
        if "oneOf" in schema:
            return self._one_of
        kind = schema.get("type")
        if kind == "object" and isinstance(value, dict):
            return self._object
        return self._array if kind == "array" and isinstance(value, list) else None

    def _scalar(self, schema: Any, value: Any, link: Link, aloud: bool) -> bool:
        kind = schema.get("type")
        if kind is None:
            return self._lossless(value, link, aloud)
        test = LITERAL_TESTS.get(kind)
        if test is None or not test(value):
            return self._fail(link, f"must be {_ARTICLES.get(kind, kind)}, not {kind_of(value)}", aloud)
        return self._literal(schema, value, link, aloud)

    def _fail(self, link: Link, message: str, aloud: bool) -> bool:
        if aloud and self._report is not None:
            self._report.add(link, message)
            if len(self._report.violations) >= MOST_VIOLATIONS:
                self._report.add(None, f"has more violations than the {MOST_VIOLATIONS} listed")
                raise _Full
        return False

    def _lossless(self, value: Any, link: Link, aloud: bool) -> bool:
        fault = self._tainted.get(id(value))
        if fault is None:
            return True
        where = self._report.place(fault[0]) if self._report is not None else ""
        return self._fail(link, f"is not lossless JSON: {where} {fault[1]}", aloud)

    def _literal(self, schema: Any, value: Any, link: Link, aloud: bool) -> bool:
        if "enum" not in schema and "const" not in schema:
            return True
        known = self._literals.get(id(schema))
        if known is None:
            allowed = allowed_literals(schema) or ()
            known = self._literals[id(schema)] = frozenset(map(scalar_key, allowed)), show_literals(allowed)
        keys, shown = known
        return scalar_key(value) in keys or self._fail(link, f"must be {shown}, not {show_literal(value)}", aloud)

    def _object(self, schema: Any, value: dict[str, Any], link: Link, aloud: bool) -> Steps:
        good = True
        properties = schema.get("properties", {})
        for name in dict.fromkeys(schema.get("required", ())):
            if name not in value:
                good = self._fail((link, name), "is required and missing", aloud)
        for name, child in properties.items():
            if not (good or aloud):
                return False
            if name in value:
                verdict = self._visit(child, value[name], (link, name), aloud)
                good &= verdict if isinstance(verdict, bool) else (yield verdict)
        if schema.get("additionalProperties") is False:
            for name in value:
                if name not in properties:
                    good = self._fail((link, name), "is not a declared property; remove it", aloud)
        return good and self._lossless(value, link, aloud)

    def _array(self, schema: Any, value: list[Any], link: Link, aloud: bool) -> Steps:
        good = True
        if "items" in schema:
            for index, item in enumerate(value):
                verdict = self._visit(schema["items"], item, (link, index), aloud)
                good &= verdict if isinstance(verdict, bool) else (yield verdict)
                if not (good or aloud):
                    return False
        return good and self._lossless(value, link, aloud)

    def _one_of(self, schema: Any, value: Any, link: Link, aloud: bool) -> Steps:
        branches = self._branches.get(id(schema))
        if branches is None:
            branches = self._branches[id(schema)] = Branches.of(schema)
        matches = branches.scalar_matches(value)
        for branch in branches.to_walk(value):
            self._walked += 1
            if matches > 1 or self._walked > _MOST_BRANCHES:
                break
            verdict = self._visit(branch, value, None, False)
            matches += verdict if isinstance(verdict, bool) else (yield verdict)
        if self._walked > _MOST_BRANCHES:
            return self._fail(link, f"takes more than {_MOST_BRANCHES} branches of oneOf to decide; use fewer", aloud)
        if matches > 1:
            return self._fail(link, "fits more than one branch of oneOf; it must fit exactly one", aloud)
        return matches == 1 or self._fail(link, "fits no branch of oneOf; it must fit exactly one", aloud)
