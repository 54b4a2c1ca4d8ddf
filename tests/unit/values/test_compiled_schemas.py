"""The one-pass way, the walk and an independent validator agree; schemas and values may be hostile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import fastjsonschema
import pytest
from dsh_hookspecs import JsonSchemaError
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsh_runtime.values import (
    FrozenDict,
    FrozenList,
    Mismatch,
    assert_object_json_schema,
    assert_supported_json_schema,
    codegen,
    compile_schema,
    snapshot_json,
    validate_json_schema_value,
)

NAMES = st.sampled_from(["a", "b", "é", "__class__", '"]#\n{x}', "k0", "o"])
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "a", "é", "true"]),
    "number": st.sampled_from([0, 1, 1.0, -0.0, 1.5, 2**70]),
    "integer": st.sampled_from([0, 1, 1.0, -3.0, 2**70]),
    "boolean": st.booleans(),
    "null": st.none(),
}
scalars = st.one_of(*SCALARS.values())
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=12) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


@st.composite
def scalar_schemas(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(SCALARS)))
    schema: dict[str, Any] = {"type": kind}
    if draw(st.booleans()):
        schema["enum"] = draw(st.lists(SCALARS[kind], min_size=1, max_size=3))
        if draw(st.booleans()):
            schema["const"] = schema["enum"][0]
    return schema


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), max_size=2, unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    return schema


schemas = st.recursive(
    st.just({}) | st.just({"type": "array"}) | scalar_schemas(),
    lambda inner: (
        objects(inner)
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda branches: {"oneOf": branches}, st.lists(inner, min_size=2, max_size=4))
    ),
    max_leaves=8,
)


@st.composite
def fitting(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """Draw a value that mostly fits the schema, so that the accepting side is met as often as the refusing one."""
    if draw(st.integers(0, 12)) == 0:
        return draw(values)
    if "oneOf" in schema:
        return draw(fitting(draw(st.sampled_from(schema["oneOf"]))))
    if "const" in schema or "enum" in schema:
        return draw(st.sampled_from([schema["const"]] if "const" in schema else schema["enum"]))
    if schema.get("type") == "array":
        return draw(st.lists(fitting(schema.get("items", {})), max_size=11))
    if schema.get("type") == "object":
        names = draw(st.permutations(list(schema["properties"])))
        needed = schema.get("required", ())
        return {
            name: draw(fitting(schema["properties"][name])) for name in names if name in needed or draw(st.booleans())
        }
    return draw(SCALARS[schema["type"]] if "type" in schema else values)


pairs = schemas.flatmap(lambda schema: st.tuples(st.just(schema), fitting(schema)))


def takes(schema: Any, value: Any) -> bool:
    try:
        frozen = compile_schema(schema).freeze(value)
    except Mismatch:
        return False
    assert frozen == snapshot_json(value)
    assert json.dumps(frozen) == json.dumps(value)
    assert_frozen(frozen)
    return True


def assert_frozen(value: Any) -> None:
    if isinstance(value, (dict, list)):
        assert type(value) in (FrozenDict, FrozenList)
        for child in value.values() if isinstance(value, dict) else value:
            assert_frozen(child)


@given(pairs)
@settings(max_examples=400, deadline=None)
def test_the_generated_pass_and_the_walk_give_the_same_verdict(pair: tuple[Any, Any]) -> None:
    schema, value = pair
    assert_supported_json_schema(schema)
    fits = not validate_json_schema_value(schema, value)
    assert takes(schema, value) == fits
    assert takes(schema, snapshot_json(value)) == fits


@given(pairs)
@settings(max_examples=60, deadline=None)
def test_an_independent_validator_gives_the_same_verdict(pair: tuple[Any, Any]) -> None:
    """fastjsonschema differs in known places: its enum takes True for 1, so booleans among numbers are left out."""
    schema, value = pair
    text = json.dumps([schema, value])
    assume(not ("enum" in text and ("true" in text or "false" in text)))
    oracle = fastjsonschema.compile(schema, use_default=False)
    try:
        oracle(value)
        expected = True
    except fastjsonschema.JsonSchemaValueException:
        expected = False
    assert takes(schema, value) == expected


BAD_NAMES = [
    '"',
    "'",
    "\\",
    "{}",
    "{x}",
    "%s",
    "\n",
    "]",
    "#",
    "__class__",
    "k0",
    "T",
    "\u2028",
    "é",
    "",
    "a'];import os#",
]


def schema_named(name: str) -> dict[str, Any]:
    inner = {"type": "string", "enum": [name, name + "!"], "description": name, "title": name, "default": name}
    properties = {name: inner, name + "2": {"oneOf": [inner, {"type": "null"}]}}
    return {"type": "object", "properties": properties, "required": [name], "additionalProperties": False}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_text_of_a_schema_reaches_generated_source(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two schemas that differ in their texts alone have one source, whatever the texts are."""
    sources: list[str] = []
    monkeypatch.setattr(codegen, "_factory", lambda source: (sources.append(source), original(source))[1])
    compiled = compile_schema(schema_named(name))
    assert compiled.freeze({name: name, name + "2": None}) == {name: name, name + "2": None}
    with pytest.raises(Mismatch):
        compiled.freeze({name: "other"})
    compile_schema(schema_named("tame")).freeze({"tame": "tame"})
    assert sources[0] == sources[1]


original = codegen._factory


def nest(levels: int, wrap: Callable[[Any], Any], leaf: Any) -> Any:
    for _ in range(levels):
        leaf = wrap(leaf)
    return leaf


TEXT = {"type": "string"}
CLASHING = (1 << 61) - 1
HOSTILE: dict[str, Callable[[], tuple[Any, Any, bool]]] = {
    "deep arrays": lambda: (
        nest(10_000, lambda x: {"type": "array", "items": x}, TEXT),
        nest(10_000, list_of, 1),
        False,
    ),
    "deep oneOf": lambda: (nest(10_000, lambda x: {"oneOf": [{"type": "null"}, x]}, TEXT), "s", True),
    "oneOf of shared branches": lambda: (nest(60, lambda x: {"oneOf": [x, x]}, TEXT), 5, False),
    "oneOf nests in a tree": lambda: (nest(11, twice, TEXT), nest(11, list_of, 5), False),
    "oneOf of many types": lambda: (nest(30, lambda x: {"oneOf": [x, {"type": "null"}, {}]}, TEXT), 5, False),
    "wide object": lambda: ({"type": "object", "properties": {f"p{i}": TEXT for i in range(20_000)}}, {"p7": 1}, False),
    "large enum": lambda: (
        {"type": "array", "items": {"type": "string", "enum": [f"e{i}" for i in range(60_000)]}},
        ["e5"] * 20_000,
        True,
    ),
    "colliding enum": lambda: ({"type": "integer", "enum": [CLASHING * i for i in range(30_000)]}, CLASHING, True),
    "many scalar branches": lambda: (
        {"type": "array", "items": {"oneOf": [{"type": "null"}] * 20_000}},
        [1] * 1000,
        False,
    ),
    "many tagged branches": lambda: (
        {"type": "array", "items": {"oneOf": [tagged(i) for i in range(3000)]}},
        [{"k": "c2999"}] * 1000,
        True,
    ),
    "shared schema nodes": lambda: (
        nest(40, lambda x: {"type": "object", "properties": {"a": x, "b": x}}, TEXT),
        {},
        True,
    ),
    "shared value nodes": lambda: (
        nest(30, lambda x: {"type": "array", "items": x}, TEXT),
        nest(30, lambda x: [x, x], "s"),
        True,
    ),
    "shared bad nodes": lambda: (
        nest(30, lambda x: {"type": "array", "items": x}, TEXT),
        nest(30, lambda x: [x, x], 1),
        False,
    ),
}


def list_of(item: Any) -> list[Any]:
    return [item]


def twice(schema: Any) -> Any:
    return {"oneOf": [{"type": "array", "items": schema}, {"type": "array", "items": json.loads(json.dumps(schema))}]}


def tagged(index: int) -> dict[str, Any]:
    return {"type": "object", "properties": {"k": {"type": "string", "const": f"c{index}"}}, "required": ["k"]}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_or_value_gets_its_verdict_in_bounded_time(name: str) -> None:
    """The bound asked for is two seconds of a quiet machine; the limit here leaves room for a busy one."""
    schema, value, fits = HOSTILE[name]()
    start = time.process_time()
    assert_supported_json_schema(schema)
    compiled = compile_schema(schema)
    try:
        compiled.freeze(value)
        assert fits
    except Mismatch:
        assert not fits
    assert bool(compiled.explain(value)) is not fits
    assert time.process_time() - start < 6


def test_violations_come_in_the_order_that_the_contract_states() -> None:
    schema = {
        "type": "object",
        "properties": {"z": TEXT, "a": {"type": "array", "items": TEXT}, "m": TEXT, "n": TEXT},
        "required": ["n", "m"],
        "additionalProperties": False,
    }
    found = validate_json_schema_value(schema, {"y": 1, "a": [1, "x", 2], "x": 1, "z": None})
    assert [item.path for item in found] == [
        "value.n",
        "value.m",
        "value.z",
        "value.a[0]",
        "value.a[2]",
        "value.y",
        "value.x",
    ]


def test_a_pass_limits_depth_like_a_snapshot() -> None:
    compiled = compile_schema({"type": "object", "properties": {"a": {"type": "array", "items": TEXT}}})
    assert compiled.freeze({"a": []}, max_depth=2)
    for value, limit in (({"a": []}, 1), ({"b": [[1]]}, 2), (snapshot_json({"b": [[1]]}), 2)):
        with pytest.raises(Mismatch):
            compiled.freeze(value, limit)
        assert compiled.explain(value, max_depth=limit)


def test_subclasses_pass_by_their_plain_value() -> None:
    class Mode(StrEnum):
        FAST = "fast"

    compiled = compile_schema({"type": "object", "properties": {"m": {"type": "string", "enum": ["fast"]}}})
    frozen: Any = compiled.freeze({Mode.FAST: 1, "m": Mode.FAST})
    assert [type(item) for item in (*frozen, frozen["m"])] == [str, str, str]


def test_a_value_that_is_no_json_is_a_violation_at_the_node_that_governs_it() -> None:
    schema = {"type": "object", "properties": {"a": {}, "n": {"type": "number"}}}
    found = validate_json_schema_value(schema, {"a": [{"b": float("nan")}], "n": float("inf"), "rest": 1})
    assert [item.path for item in found] == ["value.a", "value.n"]
    assert [item.path for item in validate_json_schema_value(schema, {"rest": {1}})] == ["value"]


def test_the_schema_of_a_compiled_one_is_its_own() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    compiled = compile_schema(schema)
    schema["properties"]["a"]["type"] = "null"
    assert compiled.freeze({"a": "x"}) == {"a": "x"}


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, [], None, {"type": "object", "pattern": 1}])
def test_an_object_schema_is_demanded_at_the_root(schema: Any) -> None:
    with pytest.raises(JsonSchemaError):
        assert_object_json_schema(schema)


def test_a_message_says_every_place() -> None:
    with pytest.raises(JsonSchemaError) as caught:
        assert_supported_json_schema({"type": "object", "properties": {"a": {"type": "x"}}, "required": ["b"]}, "tool")
    assert [item.path for item in caught.value.violations] == ["tool.required", "tool.properties.a.type"]
    assert 'names "b", which "properties" does not declare' in str(caught.value)


def test_a_schema_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {"type": "array"}
    loop["items"] = loop
    with pytest.raises(JsonSchemaError, match="contains itself"):
        assert_supported_json_schema(loop)


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_an_integer_too_long_to_print_fits_no_schema(kind: str) -> None:
    for schema, value in (({"type": kind}, 10**5000), ({"type": "array", "items": {"type": kind}}, [10**5000])):
        with pytest.raises(Mismatch):
            compile_schema(schema).freeze(value)
        assert compile_schema(schema).explain(value)
