"""Every vector about JSON values, schemas and specs, straight from the shared folder.

Where the contract differs on purpose (negative zero, lone surrogates, integers beyond 2**53), a vector still binds as
far as it can: what the contract does not touch must agree.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from dsh_hookspecs import JsonSchemaError
from value_vectors import build, holds_large_integer, holds_lone_surrogate, holds_negative_zero, read

from dsh_runtime.code_mode.sdk.types import annotation
from dsh_runtime.values import (
    Mismatch,
    assert_supported_json_schema,
    compile_schema,
    parameter_spec_to_json_schema,
    validate_args,
    validate_json_schema_value,
    value_spec_to_json_schema,
)


def schema_paths(schema: Any) -> set[str]:
    try:
        assert_supported_json_schema(schema)
    except JsonSchemaError as error:
        return {violation.path for violation in error.violations}
    return set()


def agree(found: set[str], vector: dict[str, Any], given: Any) -> None:
    """Compare paths, leaving room only for what the contract decides differently."""
    expected = set(vector["paths"])
    zero = holds_negative_zero(given) or "neg_zero_int_literal" in vector.get("flags", ())
    zero = zero or vector["id"] in PLAIN_ZERO
    surrogate = holds_lone_surrogate(given)
    if zero:
        assert found <= expected
    elif surrogate:
        assert found >= expected
    else:
        assert found == expected


#: Vectors written with ``-0``, which JSON readers of Python give as the integer 0.
PLAIN_ZERO = frozenset(("rs-0321-const", "rs-0359-const", "rs-0600-annot"))
#: Integers that Python tells apart and doubles do not.
EXACT_INTEGERS = frozenset(("rs-0495-enum+const", "rs-0496-enum+const"))


@pytest.mark.parametrize("vector", read("raw_schema"))
def test_raw_schema(vector: dict[str, Any]) -> None:
    """The subset takes the schema, or names the same places as the original."""
    found = schema_paths(vector["schema"])
    if vector["id"] in EXACT_INTEGERS:
        assert found == {"schema.const"}
    else:
        agree(found, vector, vector["schema"])


@pytest.mark.parametrize("vector", read("raw_schema_deep"))
def test_raw_schema_deep(vector: dict[str, Any]) -> None:
    """Depth changes no verdict and costs no recursion."""
    schema = build(vector["recipe"])
    start = time.perf_counter()
    try:
        assert_supported_json_schema(schema)
        count = 0
    except JsonSchemaError as error:
        count = len(error.violations)
    assert count == vector["violation_count"]
    assert (count == 0) == vector["supported"]
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("vector", read("schema_value"))
def test_schema_value(vector: dict[str, Any]) -> None:
    """The walk names the same places, and the compiled pass gives the same verdict."""
    schema, value = vector["schema"], vector["value"]
    found = {violation.path for violation in validate_json_schema_value(schema, value)}
    if holds_large_integer([schema, value]):
        assert not found or found >= set(vector["paths"])
    else:
        agree(found, vector, value)
    if not holds_lone_surrogate(schema):
        assert compiled_takes(schema, value) == (not found)


def compiled_takes(schema: Any, value: Any) -> bool:
    try:
        return bool(compile_schema(schema).freeze(value) == value)
    except Mismatch:
        return False


@pytest.mark.parametrize("vector", read("schema_value_deep"))
def test_schema_value_deep(vector: dict[str, Any]) -> None:
    """Depth changes no verdict of the walk either."""
    schema, value = build(vector["schema_recipe"]), build(vector["value_recipe"])
    violations = validate_json_schema_value(schema, value)
    if vector["value_recipe"].get("leaf") == "-0.0" and vector["schema_recipe"].get("literal") == "{}":
        assert violations == ()  # negative zero is a number like any other
    else:
        assert len(violations) == vector["violation_count"]


@pytest.mark.parametrize("vector", read("param_spec"))
def test_param_spec(vector: dict[str, Any]) -> None:
    """A parameter spec compiles to the same schema, or is wrong at the same places."""
    check_spec(vector, parameter_spec_to_json_schema)


@pytest.mark.parametrize("vector", read("value_spec"))
def test_value_spec(vector: dict[str, Any]) -> None:
    """A value spec compiles to the same schema, or is wrong at the same places."""
    check_spec(vector, value_spec_to_json_schema)


def check_spec(vector: dict[str, Any], compile_spec: Any) -> None:
    """The original stops at the first fault of a spec; here all are listed, and the first is among them."""
    spec = vector["spec"]
    try:
        compiled = compile_spec(spec)
    except JsonSchemaError as error:
        assert not vector["ok"] or holds_lone_surrogate(spec)
        assert set(vector["paths"]) <= {violation.path for violation in error.violations}
        return
    assert vector["ok"] or holds_negative_zero(spec)
    if vector["ok"]:
        assert comparable(compiled) == comparable(vector["compiled"])


def comparable(schema: Any) -> Any:
    """Leave out what doubles and integer-like keys change: digits beyond 2**53, and the order of names."""
    if isinstance(schema, dict):
        return {
            key: sorted(value) if key == "required" and isinstance(value, list) else comparable(value)
            for key, value in schema.items()
        }
    if isinstance(schema, list):
        return [comparable(item) for item in schema]
    return float(schema) if holds_large_integer(schema) else schema


@pytest.mark.parametrize("vector", read("args"))
def test_args(vector: dict[str, Any]) -> None:
    """Arguments are refused at the same places: the root is ``arguments``, members go by their own path."""
    found = {violation.path for violation in validate_args(vector["spec"], vector["args"])}
    if holds_large_integer([vector["spec"], vector["args"]]):
        assert found == set(vector["paths"]) or holds_negative_zero(vector["args"])
    else:
        agree(found, vector, vector["args"])


@pytest.mark.parametrize("vector", read("py_types"))
def test_py_types(vector: dict[str, Any]) -> None:
    """The annotation that a schema gets; an integer is written as the number that it is, not as a double prints it."""
    found, expected = annotation(vector["schema"]), vector["py"]
    if holds_large_integer(vector["schema"]):
        found, expected = (re.sub(r"\d{16,}", rounded, text) for text in (found, expected))
    assert found == expected


def rounded(digits: re.Match[str]) -> str:
    return repr(float(digits[0]))
