"""Conformance of entering a call: identity, detached results, arguments."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pipeline_kit import ANY_JSON, Recorder, failure, success
from pipeline_vectors import Vector, vectors


def dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


class Thorny(Mapping[str, Any]):
    """A mapping whose members cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("getter boom")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("getter boom")

    def __len__(self) -> int:
        return 1


@vectors("pl-005-basic")
async def test_a_result_is_a_detached_frozen_copy_of_what_the_body_returned(rec: Recorder, vector: Vector) -> None:
    value: dict[str, Any] = {"a": [1]}
    rec.tool("echo", lambda args, exec: value, schema=ANY_JSON)
    result = await rec.call()
    value["a"].append(2)
    vector.check(rec, result)


@vectors("pl-006-basic")
async def test_the_observer_gets_the_very_object_that_the_caller_gets(rec: Recorder, vector: Vector) -> None:
    rec.tool()
    rec.observe("R")
    result = await rec.call()
    vector.check(rec, result)
    assert rec.results == [result]
    assert rec.results[0] is result


@vectors("pl-010-basic")
async def test_the_body_sees_the_arguments_as_they_were_on_entry(rec: Recorder, vector: Vector) -> None:
    arguments = {"v": 1}

    def change_the_callers_own(exec: Any, next: Any) -> Any:
        arguments["v"] = 2
        return next()

    rec.pre("P", change_the_callers_own)
    rec.tool("echo", lambda args, exec: dumps(args))
    vector.check(rec, await rec.call(arguments=arguments))


@vectors("pl-012-args", "pl-014-args", "pl-015-args", "pl-016-args", "pl-019-args")
async def test_arguments_that_are_not_json_are_refused_before_any_policy(rec: Recorder, vector: Vector) -> None:
    arguments = {
        "pl-012-args": {"a": math.nan},
        "pl-014-args": {"a": object()},
        "pl-015-args": {"a": datetime.date(2026, 1, 1)},
        "pl-016-args": {"a": lambda: None},
        "pl-019-args": Thorny(),
    }
    rec.passers()
    rec.tool()
    vector.check(rec, await rec.call(arguments=arguments[vector.id]), code="INVALID_ARGS")


async def test_negative_zero_is_an_argument_like_any_other(rec: Recorder) -> None:
    """In place of pl-013-args."""
    rec.tool("echo", lambda args, exec: math.copysign(1, args["a"]), schema={"type": "number"})
    assert success(await rec.call(arguments={"a": -0.0})).value == -1.0


@vectors("pl-020-args")
async def test_a_raw_tool_may_get_null_for_arguments(rec: Recorder, vector: Vector) -> None:
    rec.tool("echo", lambda args, exec: dumps(args))
    call = rec.input()
    call = type(call)(call_id="c", name="echo", arguments=None, signal=call.signal)
    vector.check(rec, await rec.ctx.tools.execute(call))


@vectors("pl-021-args")
async def test_a_raw_tool_may_get_a_string_for_arguments(rec: Recorder, vector: Vector) -> None:
    rec.tool("echo", lambda args, exec: dumps(args))
    vector.check(rec, await rec.call(arguments="str"))


@vectors("pl-023-args")
async def test_the_arguments_of_a_raw_tool_are_its_own_to_check(rec: Recorder, vector: Vector) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    rec.tool(parameters=parameters)
    vector.check(rec, await rec.call(arguments={}))


@vectors("pl-025-args")
async def test_a_body_cannot_assign_a_member_of_its_arguments(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.tool("echo", lambda args, exec: args.__setitem__("x", 2))
    vector.check(rec, await rec.call(arguments={"x": 1}))


@vectors("pl-026-args")
async def test_a_body_cannot_append_to_a_nested_list_of_its_arguments(rec: Recorder, vector: Vector) -> None:
    rec.tool("echo", lambda args, exec: args["list"].append(3))
    vector.check(rec, await rec.call(arguments={"list": [1, 2]}))


@vectors("pl-027-args")
async def test_a_listener_that_assigns_a_member_of_the_arguments_fails_the_call(rec: Recorder, vector: Vector) -> None:
    rec.pre("M", lambda exec, next: exec.arguments.__setitem__("x", 2) or next())
    rec.passers()
    rec.tool()
    vector.check(rec, await rec.call(arguments={"x": 1}), code="LISTENER_FAILED")


@pytest.mark.parametrize(("member", "value"), [("arguments", {"x": 99}), ("name", "other")])
async def test_a_listener_that_assigns_arguments_or_name_fails_the_call(rec: Recorder, member: str, value: Any) -> None:
    """In place of pl-028-args and pl-029-args."""
    rec.pre("M", lambda exec, next: setattr(exec, member, value) or next())
    rec.tool()
    rec.tool("other")
    failure(await rec.call(arguments={"x": 1}), "LISTENER_FAILED")
    assert not rec.body_ran


@vectors("pl-207-abort")
async def test_a_signal_that_is_aborted_on_entry_ends_the_call_at_once(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.guard("G")
    rec.tool()
    vector.check(rec, await rec.call(signal=aborted()))


@vectors("pl-209-abort")
async def test_an_aborted_signal_comes_before_an_unknown_tool(rec: Recorder, vector: Vector) -> None:
    vector.check(rec, await rec.call("missing", signal=aborted()))


def aborted() -> Any:
    from dsh_runtime import AbortController

    controller = AbortController()
    controller.abort()
    return controller.signal
