"""A path of any depth reads shortly in a text, and stays whole where programs read it."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_hookspecs import JsonValueError

from dsh_runtime.values import assert_supported_json_schema, snapshot_json, validate_json_schema_value


def nested(depth: int, inside: Any) -> Any:
    for _ in range(depth):
        inside = [inside]
    return inside


def test_a_value_that_is_too_deep_is_named_by_both_ends_of_its_path() -> None:
    with pytest.raises(JsonValueError) as caught:
        snapshot_json({"a": nested(600, 1)}, max_depth=512)
    text = str(caught.value)
    assert text.startswith("value.a[0][0]")
    assert "…" in text
    assert len(text) < 200
    assert len(caught.value.violations[0].path) > 1500


def test_a_violation_deep_below_an_open_schema_is_named_shortly() -> None:
    (violation,) = validate_json_schema_value({"type": "object"}, {"a": nested(600, {1})})
    assert len(str(violation)) < 300


def test_a_schema_with_a_deep_fault_is_refused_shortly() -> None:
    schema: Any = {"type": "nothing"}
    for _ in range(300):
        schema = {"type": "array", "items": schema}
    with pytest.raises(Exception, match="…") as caught:
        assert_supported_json_schema(schema)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("depth", [0, 1, 24])
def test_a_path_of_moderate_depth_reads_in_full(depth: int) -> None:
    with pytest.raises(JsonValueError, match=r"^value(\[0\])*: ") as caught:
        snapshot_json(nested(depth, {1}))
    assert str(caught.value).count("[0]") == depth
