"""Contract 4.6 and 6.4: typed tools hold what their annotations say, and say where they do not."""

from __future__ import annotations

import collections
import enum
import subprocess
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn, TypedDict

import attrs
import pytest
from pipeline_kit import Recorder, failure, success

from dsh_runtime import define_tool, tool


class Color(enum.Enum):
    RED = "red"


@attrs.frozen
class Out:
    k: int = attrs.field(validator=attrs.validators.ge(1))


@attrs.frozen
class Finer(Out):
    color: Color = Color.RED


@attrs.frozen
class Args:
    opts: Out
    items: list[Out] = attrs.field(factory=list)


class Row(TypedDict):
    color: Color
    out: Out


class Hostile(Mapping[str, Any]):
    def __getitem__(self, key: str) -> NoReturn:
        raise LookupError("gone")

    def __iter__(self) -> Any:
        return iter("a")

    def __len__(self) -> int:
        return 1


def cycle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


async def returned(rec: Recorder, annotation: Any, value: Any) -> Any:
    rec.ctx.tools.register(
        define_tool(name="echo", description="", parameters={}, output=annotation, execute=lambda args: value)
    )
    return await rec.call(arguments={})


# Values of dicts


async def test_an_output_with_a_wrong_value_in_a_dict_is_refused_with_its_place(rec: Recorder) -> None:
    @tool
    async def echo() -> dict[str, int]:
        return {"a": "x"}  # type: ignore[dict-item]

    rec.ctx.tools.register(echo)
    result = failure(await rec.call(arguments={}), "INVALID_TOOL_OUTPUT")
    assert "value.a: must be an integer, not a string" in result.error.message


async def test_an_argument_with_a_wrong_value_in_a_dict_is_refused_with_its_place(rec: Recorder) -> None:
    @tool
    async def echo(f: dict[str, int]) -> str:
        return "never"

    rec.ctx.tools.register(echo)
    result = failure(await rec.call(arguments={"f": {"x": "y"}}), "INVALID_ARGS")
    assert result.error.message.endswith("f.x: must be an integer, not a string")


# Outputs that are not what they should be


@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (Out, {"k": 1}, "value: must be an instance of Out, not a value of type dict"),
        (Out, None, "value: must be an instance of Out, not None"),
        (list[Out], [Out(1), {"k": 1}], "value[1]: must be an instance of Out"),
        (dict[str, Out], {"a": 3}, "value.a: must be an instance of Out"),
        (Row, {"color": "red", "out": 1}, "value.out: must be an instance of Out"),
        (Out | Color, {"k": 1}, "value: must be an instance of Out or Color"),
        (Out | None, {"k": 1}, "value: must be an instance of Out or None,"),
        (Out | list[Out], [None], "value[0]: must be an instance of Out"),
        (list[Out], "x", "value: must be an array, not a string"),
        (list[Out], None, "value: must be an array, not null"),
        (Row, None, "value: must be an object, not null"),
        (Color, "blue", 'value: must be "red", not "blue"'),
        (Color, None, "value: must be a string, not null"),
        (Mapping[str, Any], Hostile(), "cannot be read: LookupError: gone"),
        (Out, object.__new__(Out), "cannot be read: AttributeError"),
        (Any, Out(1), "is of type Out, which JSON cannot carry"),
        (Any, cycle(), "value[0]: contains itself"),
        (list[Any], cycle(), "value[0]: contains itself"),
        (Sequence[Any], cycle(), "contains itself"),
        (Any, nested(600), "is nested more than 512 levels deep"),
    ],
)
async def test_a_wrong_output_names_the_tool_the_place_and_what_came(
    rec: Recorder, annotation: Any, value: Any, said: str
) -> None:
    result = failure(await returned(rec, annotation, value), "INVALID_TOOL_OUTPUT")
    assert said in result.error.message
    assert "'echo'" in result.error.message
    assert len(result.error.message) < 400


@pytest.mark.parametrize(
    ("annotation", "value", "canonical"),
    [
        (Out, Finer(1), {"k": 1}),
        (list[Out | Color | int], [Out(1), Color.RED, 2], [{"k": 1}, "red", 2]),
        (Color, "red", "red"),
        (Literal[Color.RED, 3], Color.RED, "red"),
        (Row | None, {"color": Color.RED, "out": Out(1), "more": 1}, {"color": "red", "out": {"k": 1}, "more": 1}),
        (list[Out] | list[Color], [Color.RED], ["red"]),
        (Sequence[int], range(3), [0, 1, 2]),
        (Sequence[Color], collections.deque([Color.RED]), ["red"]),
        (Mapping[str, int], types.MappingProxyType({"a": 1}), {"a": 1}),
        (tuple[int, ...], (1, 2), [1, 2]),
    ],
)
async def test_an_output_is_taken_apart_by_its_annotation(
    rec: Recorder, annotation: Any, value: Any, canonical: Any
) -> None:
    assert success(await returned(rec, annotation, value)).value == canonical


@pytest.mark.parametrize("annotation", [Any, list[Any], Sequence[Any]])
async def test_a_deep_output_within_the_limit_passes(rec: Recorder, annotation: Any) -> None:
    assert success(await returned(rec, annotation, nested(512))).value


async def test_a_render_of_a_value_that_its_class_refuses_is_an_invalid_output(rec: Recorder) -> None:
    broken = Out(1)
    object.__setattr__(broken, "k", 0)
    made = define_tool(
        name="echo",
        description="",
        parameters={},
        output=Out,
        execute=lambda args: broken,
        render=lambda args, value: [{"type": "text", "text": str(value.k)}],
    )
    rec.ctx.tools.register(made)
    result = failure(await rec.call(arguments={}), "INVALID_TOOL_OUTPUT")
    assert "value.k: 'k' must be >= 1: 0" in result.error.message


# Validators of classes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"opts": {"k": 0}}, ["opts.k: 'k' must be >= 1: 0"]),
        (
            {"opts": {"k": -1}, "items": [{"k": 1}, {"k": 0}]},
            ["opts.k: 'k' must be >= 1: -1", "items[1].k: 'k' must be >= 1: 0"],
        ),
    ],
)
async def test_a_validator_that_refuses_is_named_by_its_field(
    rec: Recorder, arguments: dict[str, Any], said: list[str]
) -> None:
    made = define_tool(name="echo", description="", parameters=Args, output=str, execute=lambda args: "never")
    rec.ctx.tools.register(made)
    result = failure(await rec.call(arguments=arguments), "INVALID_ARGS")
    assert result.error.message == "; ".join(said)


async def test_a_validator_below_a_parameter_is_named_with_the_parameter(rec: Recorder) -> None:
    @tool
    async def echo(a: Args, k: int = 1) -> str:
        return "never"

    rec.ctx.tools.register(echo)
    result = failure(await rec.call(arguments={"a": {"opts": {"k": 0}}}), "INVALID_ARGS")
    assert result.error.message == "a.opts.k: 'k' must be >= 1: 0"


# What a first call costs


def test_no_typed_call_imports_a_library_of_converters() -> None:
    program = """
import sys, attrs, trio
from dsh_runtime import AbortController, ToolExecutionInput, open_host, tool
@attrs.frozen
class Point:
    x: int
@tool
async def move(point: Point, by: dict[str, int], tags: list[str]) -> Point | None:
    return point
async def main():
    async with open_host() as host:
        host.ctx.tools.register(move)
        arguments = {"point": {"x": 1}, "by": {"x": 1}, "tags": ["a"]}
        result = await host.ctx.tools.execute(ToolExecutionInput("c", "move", arguments, AbortController().signal))
        assert not result.is_error, result
        print("cattrs" in sys.modules)
trio.run(main)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]
