"""What a snapshot, a check-and-freeze pass and getting one ready cost, beside json and fastjsonschema.

Run it as ``python bench/values_bench.py``. Compare ratios within one run: absolute figures drift with the machine.
"""

from __future__ import annotations

import json
import timeit
from collections.abc import Callable
from typing import Any

import fastjsonschema

from dsh_runtime.values import codegen, compile_schema, snapshot_json

TEXT = {"type": "string"}
SMALL_SCHEMA = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
ROW_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": TEXT,
        "ok": {"type": "boolean"},
        "score": {"type": "number"},
        "tags": {"type": "array", "items": TEXT},
    },
    "required": ["id", "name"],
    "additionalProperties": False,
}
ROWS_SCHEMA = {"type": "object", "properties": {"rows": {"type": "array", "items": ROW_SCHEMA}}, "required": ["rows"]}
LINES_SCHEMA = {"type": "object", "properties": {"lines": {"type": "array", "items": TEXT}, "path": TEXT}}


def rows(count: int) -> dict[str, Any]:
    return {
        "rows": [{"id": i, "name": f"row {i}", "ok": True, "score": i / 3, "tags": ["a", "b"]} for i in range(count)]
    }


def lines(count: int) -> dict[str, Any]:
    return {"path": "/a/file", "lines": [f"line {i} of a file that has a good many of them" for i in range(count)]}


CASES: list[tuple[str, Any, Any]] = [
    ("small", SMALL_SCHEMA, {"name": "Ada"}),
    ("10 KB of rows", ROWS_SCHEMA, rows(125)),
    ("10 KB of lines", LINES_SCHEMA, lines(200)),
    ("1 MB of rows", ROWS_SCHEMA, rows(11_500)),
    ("1 MB of lines", LINES_SCHEMA, lines(19_000)),
]


def microseconds(run: Callable[[], object]) -> float:
    """Give the best of several rounds, each long enough to be measured."""
    timer = timeit.Timer(run)
    number, taken = timer.autorange()
    if taken > 0.5:
        return taken / number * 1e6
    number = max(1, number // 4)
    return min(timer.repeat(7, number)) / number * 1e6


def call_costs() -> None:
    columns = "".join(f"{column:>11}" for column in ("snapshot", "pass", "json", "fastjson", "pass/json"))
    print(f"{'microseconds a call':<20}{'bytes':>9}{columns}")
    for name, schema, value in CASES:
        compiled = compile_schema(schema)
        oracle = fastjsonschema.compile(schema, use_default=False)
        compiled.freeze(value)
        figures = (
            microseconds(lambda value=value: snapshot_json(value, max_depth=512)),  # type: ignore[misc]
            microseconds(lambda value=value, run=compiled.freeze: run(value, 512)),  # type: ignore[misc]
            microseconds(lambda value=value: json.loads(json.dumps(value))),  # type: ignore[misc]
            microseconds(lambda value=value, run=oracle: run(value)),  # type: ignore[misc]
        )
        shown = "".join(f"{figure:>11.2f}" for figure in figures)
        print(f"{name:<20}{len(json.dumps(value)):>9}{shown}{figures[1] / figures[2]:>11.2f}")


def ready_costs() -> None:
    print(
        f"\n{'microseconds to be ready':<26}{'compile_schema':>16}{'new shape':>12}{'known shape':>13}{'fastjson':>11}"
    )
    for name, schema in (("small", SMALL_SCHEMA), ("one row", ROW_SCHEMA), ("rows", ROWS_SCHEMA)):
        frozen = compile_schema(schema).schema

        def anew(frozen: Any = frozen) -> None:
            codegen._factory.cache_clear()
            codegen.generate(frozen)

        figures = (
            microseconds(lambda schema=schema: compile_schema(schema)),  # type: ignore[misc]
            microseconds(anew),
            microseconds(lambda frozen=frozen: codegen.generate(frozen)),  # type: ignore[misc]
            microseconds(lambda schema=schema: fastjsonschema.compile(schema, use_default=False)),  # type: ignore[misc]
        )
        print(f"{name:<26}{figures[0]:>16.1f}{figures[1]:>12.1f}{figures[2]:>13.1f}{figures[3]:>11.1f}")


if __name__ == "__main__":
    call_costs()
    ready_costs()
