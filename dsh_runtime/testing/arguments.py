"""Generated arguments: values that a schema of the enforced subset accepts, as a Hypothesis strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: How large what is generated becomes: enough to find what breaks, small enough to be read.
_MAX_ITEMS: Final = 4
_MAX_TEXT: Final = 20
_INTEGERS: Final = (-(2**53), 2**53)


def arguments_for(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    """Values that a schema accepts: of a tool's parameters, its arguments.

    :class:`JsonSchemaError` for a schema outside the subset. ``default`` and ``examples`` are among the values, where
    the schema accepts them. ``pip install dsh-runtime[testing]`` brings Hypothesis.
    """
    from dsh_runtime.values import assert_supported_json_schema

    try:
        import hypothesis  # noqa: F401
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("arguments_for needs hypothesis; install dsh-runtime[testing]") from error
    assert_supported_json_schema(schema)
    return _values(schema)


def _values(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    own = _of_form(schema)
    told = [*schema.get("examples", ()), *([schema["default"]] if "default" in schema else ())]
    accepted = [value for value in told if _accepts(schema, value)]
    return own | st.sampled_from(accepted) if accepted else own


def _accepts(schema: Mapping[str, Any], value: Any) -> bool:
    from dsh_runtime.values import validate_json_schema_value

    return not validate_json_schema_value(schema, value, "arguments")


def _of_form(schema: Mapping[str, Any]) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(list(schema["enum"]))
    if "oneOf" in schema:
        # Exactly one branch may match: what two of them share is left out.
        return st.one_of(*map(_values, schema["oneOf"])).filter(lambda value: _accepts(schema, value))
    kind = schema.get("type")
    if kind == "object":
        return _objects(schema)
    if kind == "array":
        return st.lists(_values(schema.get("items", {})), max_size=_MAX_ITEMS)
    return _scalars(kind) if kind is not None else _any_json()


def _scalars(kind: str) -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    scalars: dict[str, SearchStrategy[Any]] = {
        "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=_MAX_TEXT),
        "integer": st.integers(*_INTEGERS) | st.integers(-100, 100).map(float),
        "number": st.integers(-1000, 1000) | st.floats(allow_nan=False, allow_infinity=False, width=32),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return scalars[kind]


def _any_json() -> SearchStrategy[Any]:
    from hypothesis import strategies as st

    leaves = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=3)
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("xy", max_size=3), inner, max_size=2),
        max_leaves=5,
    )


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
    others = st.text("qz", min_size=1, max_size=3).filter(lambda name: name not in properties)
    return st.builds(lambda own, more: {**own, **more}, declared, st.dictionaries(others, _any_json(), max_size=1))
