"""What an annotation demands of the values of a dict is checked, though the published schema cannot say it."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from dsh_runtime.values import CompiledSchema, Mismatch, assert_supported_json_schema, compile_schema, schema_of


@attrs.frozen
class Labels:
    labels: dict[str, int]


def compiled(annotation: Any) -> CompiledSchema:
    schema = schema_of(annotation)
    assert_supported_json_schema(schema)
    return compile_schema(schema)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (dict[str, int], {"type": "object"}),
        (list[dict[str, int]], {"type": "array", "items": {"type": "object"}}),
        (dict[str, int] | None, {"oneOf": [{"type": "object"}, {"type": "null"}]}),
        (dict[str, int] | dict[str, str], {"type": "object"}),
        (Labels, {"type": "object", "properties": {"labels": {"type": "object"}}, "required": ["labels"]}),
    ],
)
def test_the_published_schema_has_open_objects(annotation: Any, schema: dict[str, Any]) -> None:
    assert json.loads(json.dumps(schema_of(annotation))) == schema


@pytest.mark.parametrize(
    ("annotation", "value", "paths"),
    [
        (dict[str, int], {"a": 1, "b": "x", "c": None}, ["value.b", "value.c"]),
        (dict[str, dict[str, int]], {"a": {"b": "x"}}, ["value.a.b"]),
        (dict[str, list[dict[str, int]]], {"a": [{}, {"b": "x"}]}, ["value.a[1].b"]),
        (list[dict[str, bool]], [{"a": True}, {"a": 1}], ["value[1].a"]),
        (dict[str, Labels], {"a": {"labels": {"b": 0.5}}, "c": {}}, ["value.a.labels.b", "value.c.labels"]),
        (dict[str, int] | None, {"a": "x"}, ["value.a"]),
        (dict[str, int] | dict[str, str], {"a": "x", "b": 1}, ["value"]),
        (dict[str, dict[str, int] | str], {"a": "x", "b": {"c": "x"}}, ["value.b.c"]),
        (dict[str, int], ["x"], ["value"]),
        (dict[str, int], {"a": {1, 2}}, ["value"]),
    ],
)
def test_every_value_that_does_not_fit_is_named(annotation: Any, value: Any, paths: list[str]) -> None:
    schema = compiled(annotation)
    assert [violation.path for violation in schema.explain(value)] == paths
    with pytest.raises(Mismatch):
        schema.freeze(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (dict[str, int], {}),
        (dict[str, int], {str(number): number for number in range(100)}),
        (dict[str, Any], {"a": "x", "b": [1]}),
        (dict[str, int] | dict[str, str], {"a": "x"}),
        (dict[str, int] | dict[str, str], {}),
        (dict[str, int] | list[str] | None, None),
        (dict[str, Labels | int], {"a": {"labels": {"b": 1}}, "c": 2}),
    ],
)
def test_what_fits_is_frozen_as_it_is(annotation: Any, value: Any) -> None:
    schema = compiled(annotation)
    assert schema.freeze(value) == value
    assert not schema.explain(value)


def test_violations_without_end_are_cut_off() -> None:
    found = compiled(dict[str, dict[str, int]]).explain({"a": {str(number): "x" for number in range(20_000)}})
    assert 10_000 <= len(found) < 10_010
