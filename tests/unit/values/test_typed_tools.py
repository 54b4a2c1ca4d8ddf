"""Classes, TypedDicts and annotated functions say the same as a spec, and values become instances and go back."""

from __future__ import annotations

import dataclasses
import enum
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import attrs
import pytest
from dsh_hookspecs import JsonSchemaError, JsonValue, ToolArgsError

from dsh_runtime.values import (
    assert_supported_json_schema,
    compile_schema,
    parameter_spec_to_json_schema,
    parse_docstring,
    schema_of,
    signature_of,
    snapshot_json,
    structure,
    structure_call,
    unstructure,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Point:
    """A place.

    Attributes:
        x: how far right
    """

    x: int
    y: float = 0.5


@dataclasses.dataclass
class Options:
    depth: int | float
    labels: dict[str, int] = dataclasses.field(default_factory=dict)


class Extra(TypedDict, total=False):
    must: Required[Annotated[int, "needed"]]
    may: NotRequired[str]
    raw: JsonValue


@attrs.frozen
class Args:
    name: Annotated[str, "who"]
    color: Color = Color.RED
    mode: Literal["a", "b", 1, None] = "a"
    point: Point | None = None
    points: list[Point] = attrs.field(factory=list)
    numbers: tuple[int, ...] = ()
    extra: Extra | None = None
    options: Options | None = None
    anything: JsonValue = None
    either: Point | str | int = 3


@attrs.frozen
class Small:
    path: Annotated[str, "where"]
    limit: int = 10
    _hidden: bool = False


@attrs.frozen
class Positive:
    n: int = attrs.field(validator=attrs.validators.gt(0))


@attrs.frozen
class Nested:
    items: list[Positive] = attrs.field(factory=list)
    by_name: dict[str, Positive] = attrs.field(factory=dict)
    either: Positive | str | None = None


@dataclasses.dataclass
class Whole:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


@attrs.frozen
class Converted:
    fine: int = 1
    _hidden: str = attrs.field(default="1", converter=lambda text: str(int(text)))


@attrs.frozen
class Unsayable:
    data: bytes
    pair: tuple[int, str]
    by_number: dict[int, str]
    again: Unsayable | None
    many: list[set[int]]


FULL = {
    "name": "x",
    "color": "blue",
    "mode": 1,
    "point": {"x": 1, "y": 0.5},
    "points": [{"x": 2, "y": 3.0}],
    "numbers": [1, 2],
    "extra": {"must": 1, "raw": [{"k": None}]},
    "options": {"depth": 1.5, "labels": {"k": 1}},
    "anything": {"a": [1]},
    "either": {"x": 1, "y": 0.5},
}


def test_a_class_gives_the_schema_of_the_spec_that_says_the_same() -> None:
    spec = {
        "path": {"type": "string", "description": "where", "required": True},
        "limit": {"type": "integer", "default": 10},
        "hidden": {"type": "boolean", "default": False},
    }
    assert schema_of(Small) == parameter_spec_to_json_schema(spec)


def test_every_supported_annotation_stays_inside_the_subset() -> None:
    schema = schema_of(Args)
    assert_supported_json_schema(schema)
    properties = schema["properties"]
    assert schema["required"] == ["name"]
    assert properties["color"] == {"type": "string", "enum": ["red", "blue"], "default": "red"}
    assert properties["mode"]["oneOf"] == [
        {"type": "string", "enum": ["a", "b"]},
        {"type": "integer", "const": 1},
        {"type": "null"},
    ]
    assert properties["anything"] == {"default": None}
    assert properties["points"]["items"]["properties"]["x"] == {"type": "integer", "description": "how far right"}


def test_a_typed_dict_says_which_keys_are_required() -> None:
    schema = schema_of(Extra)
    assert schema["required"] == ["must"]
    assert schema["properties"]["must"] == {"type": "integer", "description": "needed"}
    assert schema["properties"]["raw"] == {}


@pytest.mark.parametrize(
    ("annotation", "node"),
    [
        (int | float, {"type": "number"}),
        (bool | int, {"oneOf": [{"type": "boolean"}, {"type": "integer"}]}),
        (str | Literal["a"], {"type": "string"}),
        (int | Any, {}),
        (list, {"type": "array"}),
        (list[Any], {"type": "array"}),
        (dict, {"type": "object"}),
        (Literal[True], {"type": "boolean", "const": True}),
        (str | None, {"oneOf": [{"type": "string"}, {"type": "null"}]}),
    ],
)
def test_annotation_to_node(annotation: Any, node: dict[str, Any]) -> None:
    assert schema_of(annotation) == node


def test_a_value_becomes_an_instance_and_goes_back() -> None:
    value = compile_schema(schema_of(Args)).freeze(FULL)
    args = structure(Args)(value)
    assert isinstance(args, Args)
    assert (args.color, args.point, args.numbers) == (Color.BLUE, Point(1), (1, 2))
    assert args.either == Point(1)
    assert args.options == Options(1.5, {"k": 1})
    apart = unstructure(Args)
    assert apart is not None
    assert snapshot_json(apart(args)) == FULL


def test_defaults_are_those_of_the_class() -> None:
    assert structure(Small)(snapshot_json({"path": "p", "beyond": 1})) == Small("p")


@pytest.mark.parametrize(
    ("record", "value", "path"),
    [
        (Positive, {"n": 0}, "n"),
        (Nested, {"items": [{"n": 1}, {"n": 0}]}, "items[1].n"),
        (Nested, {"by_name": {"a": {"n": 0}}}, "by_name.a.n"),
        (Nested, {"either": {"n": 0}}, "either.n"),
        (Whole, {"low": 2, "high": 1}, "arguments"),
        (Converted, {"hidden": "x"}, "hidden"),
    ],
)
def test_what_the_schema_cannot_say_is_refused_with_its_place(record: type, value: Any, path: str) -> None:
    with pytest.raises(ToolArgsError) as caught:
        structure(record)(snapshot_json(value))
    assert [violation.path for violation in caught.value.violations] == [path]


def test_every_annotation_outside_the_subset_is_named() -> None:
    with pytest.raises(JsonSchemaError) as caught:
        schema_of(Unsayable)
    assert [violation.path for violation in caught.value.violations] == [
        "Unsayable.data",
        "Unsayable.pair",
        "Unsayable.by_number",
        "Unsayable.again",
        "Unsayable.many",
    ]


async def search(path: str, limit: int = 3, *, exec: Any, color: Color = Color.RED) -> str:
    """Search a file.

    Longer words.

    Args:
        path (str): where
            it is
        limit: how many: lines

    Returns:
        the lines
    """
    return path


def test_a_function_is_described_by_its_annotations_and_its_docstring() -> None:
    schema, description, descriptions = signature_of(search)
    assert description == "Search a file."
    assert descriptions == {"path": "where it is", "limit": "how many: lines"}
    assert list(schema["properties"]) == ["path", "limit", "color"]
    assert schema["required"] == ["path"]
    assert structure_call(search)(snapshot_json({"path": "p", "color": "blue"})) == {"path": "p", "color": Color.BLUE}


def variadic(*args: int) -> None: ...


def unannotated(x) -> None: ...  # type: ignore[no-untyped-def]


def unresolved(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize("function", [variadic, unannotated, unresolved])
def test_a_function_that_cannot_be_a_tool_is_refused_by_name(function: Any) -> None:
    with pytest.raises(JsonSchemaError, match=function.__name__):
        signature_of(function)


SPHINX = """Sum it
up.

:param int a: the a
   goes on
:param b: the b
:returns: c
"""
NUMPY = """Sum it up.

Parameters
----------
a : int
    the a
    goes on
b, c : int, optional
    the b

Returns
-------
x : int
    nope
"""


def test_sphinx_and_numpy_docstrings_are_read() -> None:
    assert parse_docstring(SPHINX).summary == parse_docstring(NUMPY).summary == "Sum it up."
    assert parse_docstring(SPHINX).parameters == {"a": "the a goes on", "b": "the b"}
    assert parse_docstring(NUMPY).parameters == {"a": "the a goes on", "b": "the b", "c": "the b"}


def test_a_missing_docstring_says_nothing() -> None:
    assert parse_docstring(None).summary == ""
