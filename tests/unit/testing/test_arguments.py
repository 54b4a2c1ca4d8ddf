"""Generated arguments: what a schema accepts, and as much of it as there is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from dsh_runtime import JsonSchemaError, validate_json_schema_value
from dsh_runtime.testing import arguments_for

QUIET = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of the subset."""
    scalars = st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda kind: {"type": kind})
    fixed = st.sampled_from(
        [
            {},
            {"type": "string", "enum": ["x", "y"]},
            {"type": "integer", "const": 3},
            {"type": "string", "examples": ["seen", 7]},
        ]
    )
    return st.recursive(scalars | fixed, _composed, max_leaves=6)


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "q", "z", "a-b"])
    objects = st.dictionaries(names, inner, max_size=3).flatmap(
        lambda properties: st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.just(properties)},
            optional={"required": st.sets(names).map(lambda some: sorted(some & set(properties)))}
            | {"additionalProperties": st.booleans()},
        )
    )
    either = st.just({"oneOf": [{"type": "null"}, {"type": "string"}, {"type": "number"}, {"type": "integer"}]})
    return objects | inner.map(lambda items: {"type": "array", "items": items}) | either


@given(st.data(), schemas())
@QUIET
def test_what_is_generated_holds_to_its_schema(data: st.DataObject, schema: dict[str, Any]) -> None:
    assert validate_json_schema_value(schema, data.draw(arguments_for(schema)), "value") == ()


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "integer"}, lambda value: isinstance(value, float)),
        ({"type": "object", "properties": {"a": {}}}, lambda value: "a" not in value),
        ({"type": "object", "properties": {"a": {}}}, lambda value: value.keys() - {"a"}),
        ({"type": "string", "examples": ["seen"]}, lambda value: value == "seen"),
        ({"oneOf": [{"type": "null"}, {"type": "integer"}]}, lambda value: value is None),
        ({"type": "array"}, lambda value: len(value) > 2),
    ],
)
def test_what_a_schema_leaves_open_is_generated(schema: dict[str, Any], wanted: Any) -> None:
    find(arguments_for(schema), wanted, settings=QUIET)


def test_a_schema_outside_the_subset_is_refused_with_its_places() -> None:
    with pytest.raises(JsonSchemaError, match="minLength"):
        arguments_for({"type": "string", "minLength": 3})
