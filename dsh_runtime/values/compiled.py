"""A schema made ready for calls: checking and freezing in one pass, explanations on demand."""

from __future__ import annotations

from typing import Any, Protocol

from dsh_hookspecs import JsonValue, JsonValueError, Violation

from dsh_runtime.values.codegen import Mismatch, Pass, TooLarge, generate
from dsh_runtime.values.frozen import deeper_than
from dsh_runtime.values.paths import Link, Report
from dsh_runtime.values.snapshot import QUICK_DEPTH, RECHECK, Unusual, snapshot_json
from dsh_runtime.values.walk import Walk, as_tree, explain, fits


class Demand(Protocol):
    """What a schema leaves unsaid about a frozen value that fits it."""

    def met(self, value: Any) -> bool:
        """Tell whether the value meets the demand."""

    def explain(self, value: Any, link: Link, report: Report) -> None:
        """Note every violation; ``link`` is the place of the value."""


class CompiledSchema:
    """Checks and freezes values against one supported schema; ``compile_schema()`` makes it."""

    __slots__ = ("_depth", "_pass", "schema")

    demand: Demand | None = None

    def __init__(self, schema: JsonValue) -> None:
        self.schema = schema
        self._pass: Pass | None = None
        self._depth = 0

    def __repr__(self) -> str:
        return f"CompiledSchema({self.schema!r})"

    def freeze(self, value: object, max_depth: int | None = None) -> JsonValue:
        """Give the frozen value, or raise ``Mismatch`` when it does not fit the schema or is not JSON."""
        run = self._pass or self._prepare()
        room = QUICK_DEPTH if max_depth is None or max_depth > QUICK_DEPTH else max_depth
        memo: dict[int, Any] = {}
        if room >= self._depth:
            try:
                frozen: JsonValue = run(value, room, memo)
                if max_depth is None or RECHECK not in memo or not deeper_than(frozen, max_depth):
                    return frozen
            except (Unusual, RecursionError):
                pass
        return self._thorough(value, max_depth)

    def explain(self, value: object, path: str = "value", *, max_depth: int | None = None) -> tuple[Violation, ...]:
        """List every violation; an empty tuple means that the value fits."""
        return self._explain(value, Report(path), max_depth)

    def explain_arguments(self, value: object, *, max_depth: int | None = None) -> tuple[Violation, ...]:
        """List every violation of a tool's arguments: the root is ``arguments``, members go by their own path."""
        return self._explain(value, Report("arguments", bare_members=True), max_depth)

    def takes(self, value: object) -> bool:
        """Tell whether the value fits."""
        try:
            self.freeze(value)
        except Mismatch:
            return False
        return True

    def shape(self) -> CompiledSchema:
        """The schema without its demand."""
        return self

    def _explain(self, value: object, report: Report, max_depth: int | None) -> tuple[Violation, ...]:
        return explain(self.schema, value, report, max_depth)

    def _prepare(self) -> Pass:
        try:
            self._pass, self._depth = generate(self.schema)
        except TooLarge:
            self._pass = _leave_it
        return self._pass

    def _thorough(self, value: object, max_depth: int | None) -> JsonValue:
        try:
            frozen = snapshot_json(value, max_depth=max_depth)
        except JsonValueError:
            raise Mismatch from None
        if not fits(self.schema, frozen):
            raise Mismatch
        return frozen


class _Demanding(CompiledSchema):
    """A schema and what it leaves unsaid."""

    __slots__ = ("demand",)

    def __init__(self, schema: JsonValue, demand: Demand) -> None:
        super().__init__(schema)
        self.demand: Demand = demand

    def freeze(self, value: object, max_depth: int | None = None) -> JsonValue:
        frozen = super().freeze(value, max_depth)
        if not self.demand.met(frozen):
            raise Mismatch
        return frozen

    def shape(self) -> CompiledSchema:
        return CompiledSchema(self.schema)

    def _explain(self, value: object, report: Report, max_depth: int | None) -> tuple[Violation, ...]:
        tree, tainted = as_tree(value, max_depth)
        Walk(tainted, report).run(self.schema, tree)
        if not tainted:
            self.demand.explain(tree, None, report)
        return tuple(report.violations)


def compile_schema(schema: object) -> CompiledSchema:
    """Make a schema, already asserted as supported, ready for calls. The pass itself is generated on first use.

    The schema of an annotation brings along what it demands beyond the subset (see ``members``).
    """
    demand: Demand | None = getattr(schema, "demand", None)
    frozen = snapshot_json(schema, path="schema")
    return CompiledSchema(frozen) if demand is None else _Demanding(frozen, demand)


def _leave_it(value: Any, room: int, memo: dict[int, Any]) -> Any:
    raise Unusual
