"""The author's DSL compiles to the subset and lists what is wrong with a spec."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_hookspecs import JsonSchemaError

from dsh_runtime.values import parameter_spec_to_json_schema, validate_args, value_spec_to_json_schema


def paths(compile_spec: Any, spec: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(JsonSchemaError) as caught:
        compile_spec(spec, **kwargs)
    return [violation.path for violation in caught.value.violations]


def test_requiredness_moves_from_the_property_to_the_object() -> None:
    spec = {"path": {"type": "string", "required": True, "description": "where"}, "deep": {"type": "json"}}
    assert parameter_spec_to_json_schema(spec) == {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "where"}, "deep": {}},
        "required": ["path"],
    }


def test_every_fault_of_a_spec_is_listed() -> None:
    spec = {
        "a": {"type": "string", "minimum": 1, "required": False},
        "b": {"type": "object", "properties": {"x": {"type": "nope"}}},
        "c": 5,
    }
    assert paths(parameter_spec_to_json_schema, spec) == [
        "parameters.a.minimum",
        "parameters.a.required",
        "parameters.b.additionalProperties",
        "parameters.b.properties.x.type",
        "parameters.c",
    ]


def test_the_root_goes_by_the_name_that_the_caller_gives() -> None:
    assert paths(value_spec_to_json_schema, {"type": "x"}, path="output") == ["output.type"]
    assert paths(value_spec_to_json_schema, {"type": "string", "enum": [1]}, path="output") == ["output.enum"]


def test_a_spec_that_is_no_json_is_refused() -> None:
    assert paths(value_spec_to_json_schema, {"type": "json", "default": {1}}) == ["schema.default"]


def test_the_compiled_schema_shares_nothing_with_the_spec() -> None:
    spec: dict[str, Any] = {"a": {"type": "string", "enum": ["x"]}}
    schema = parameter_spec_to_json_schema(spec)
    spec["a"]["enum"].append("y")
    assert schema["properties"]["a"]["enum"] == ["x"]


def test_defaults_are_annotations_and_nothing_is_filled_in() -> None:
    assert validate_args({"n": {"type": "integer", "default": 3, "required": True}}, {})[0].path == "n"


def test_depth_costs_no_recursion() -> None:
    spec: Any = {"type": "string"}
    for _ in range(20_000):
        spec = {"type": "array", "items": spec}
    assert value_spec_to_json_schema(spec)["type"] == "array"
