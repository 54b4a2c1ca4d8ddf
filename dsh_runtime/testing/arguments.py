"""Generated arguments: values that a schema of the enforced subset accepts, as a Hypothesis strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def arguments_for(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Values for a schema. ``pip install dsh-runtime[testing]`` brings Hypothesis.

    What a branch of ``oneOf`` shares with another is left out, since exactly one may match.
    """
    from dsh_runtime.values import validate_json_schema_value

    return _values(schema).filter(lambda value: not validate_json_schema_value(schema, value, "arguments"))


def _values(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(list(schema["enum"]))
    if "oneOf" in schema:
        return st.one_of(*(_values(branch) for branch in schema["oneOf"]))
    kind = schema.get("type")
    if kind == "object":
        return _objects(schema)
    if kind == "array":
        return st.lists(_values(schema.get("items", {})), max_size=4)
    simple = {
        "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        "integer": st.integers(-(2**53), 2**53),
        "number": st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False, width=32),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    if kind in simple:
        return simple[kind]
    leaves = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3)
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("xy"), inner))


def _objects(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    properties = schema.get("properties", {})
    required = set(schema.get("required", ()))
    declared = st.fixed_dictionaries(
        {name: _values(properties[name]) for name in properties if name in required},
        optional={name: _values(properties[name]) for name in properties if name not in required},
    )
    if schema.get("additionalProperties") is False:
        return declared
    extra = st.dictionaries(st.text("qz", min_size=1, max_size=3), st.integers(-5, 5), max_size=1)
    return st.builds(lambda more, own: {**more, **own}, extra, declared)
