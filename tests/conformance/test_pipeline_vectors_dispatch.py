"""Conformance of the dispatch: wrappers, bodies, values, rendering, meta, contexts."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from pipeline_kit import (
    ANY_JSON,
    Recorder,
    code,
    failure,
    message,
    raising,
    sources,
    success,
    text,
    unattributed,
)
from pipeline_vectors import Vector, vectors

from dsh_runtime import (
    AbortController,
    Accept,
    Block,
    HarnessError,
    ToolExecutionSuccess,
)

# Wrappers


@vectors("pl-078-around")
async def test_a_wrappers_signal_that_aborts_turns_a_success_into_aborted(rec: Recorder, vector: Vector) -> None:
    deadline = AbortController()

    async def replace(exec: Any, next: Any) -> Any:
        exec.signal = deadline.signal
        return await next()

    rec.passers()
    rec.around("S", replace)
    rec.tool("echo", lambda args, exec: deadline.abort() and "ignored")
    vector.check(rec, await rec.call())


@vectors("pl-081-around")
async def test_a_wrapper_cannot_detach_the_body_from_its_caller(rec: Recorder, vector: Vector) -> None:
    caller = AbortController()
    seen: list[bool] = []

    def body(args: Any, exec: Any) -> str:
        caller.abort()
        seen.append(exec.signal.aborted)
        return "ignored"

    async def detach(exec: Any, next: Any) -> Any:
        exec.signal = AbortController().signal
        return await next()

    rec.around("S", detach)
    rec.tool("echo", body)
    vector.check(rec, await rec.call(signal=caller.signal))
    assert seen == [True]


@vectors("pl-082-around")
async def test_a_wrapper_cannot_take_the_signal_away(rec: Recorder, vector: Vector) -> None:
    async def remove(exec: Any, next: Any) -> Any:
        exec.signal = None
        return await next()

    rec.passers()
    rec.around("S", remove)
    rec.tool()
    result = await rec.call()
    vector.check(rec, result, code=unattributed(result))


@vectors("pl-084-around")
async def test_a_wrappers_own_value_has_to_hold(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.around("O", lambda exec, next: ToolExecutionSuccess(value=5, content=[]))
    rec.tool()
    vector.check(rec, await rec.call())


@vectors("pl-089-around")
async def test_a_wrapper_that_raises_loses_what_the_body_deferred(rec: Recorder, vector: Vector) -> None:
    async def fail(exec: Any, next: Any) -> Any:
        await next()
        raise RuntimeError("wrapper boom")

    rec.around("T", fail)
    rec.tool("echo", lambda args, exec: exec.defer_context(message("c1")) or "ok")
    result = await rec.call()
    vector.check(rec, result, code=unattributed(result))


async def test_an_inner_wrapper_wraps_every_attempt_of_a_retry(rec: Recorder) -> None:
    """In place of pl-091-around."""

    async def retry(exec: Any, next: Any) -> Any:
        await next()
        rec.log("A-retry")
        return await next()

    async def inner(exec: Any, next: Any) -> Any:
        rec.log("B-before")
        result = await next()
        rec.log("B-after")
        return result

    rec.around("A", retry)
    rec.around("B", inner)
    rec.tool(finalized=False)
    await rec.call()
    attempt = ["execute:B", "B-before", "body:echo", "render", "B-after"]
    assert rec.stages == ["execute:A", *attempt, "A-retry", *attempt]


@vectors("pl-092-around")
async def test_a_retry_gives_the_second_attempts_value(rec: Recorder, vector: Vector) -> None:
    async def retry(exec: Any, next: Any) -> Any:
        first = await next()
        return await next() if first.is_error else first

    def body(args: Any, exec: Any) -> str:
        if rec.count("body:") == 1:
            raise RuntimeError("first attempt")
        return "second ok"

    rec.around("A", retry)
    rec.tool("echo", body)
    vector.check(rec, await rec.call())


@vectors("pl-094-around")
async def test_a_copy_of_the_result_is_validated_and_rendered_anew(rec: Recorder, vector: Vector) -> None:
    async def copy(exec: Any, next: Any) -> Any:
        return attrs.evolve(await next())

    rec.around("W", copy)
    rec.tool(meta=lambda args, value: {"m": 1})
    vector.check(rec, await rec.call())


@vectors("pl-095-around")
async def test_a_wrappers_own_content_gives_way_to_the_rendering(rec: Recorder, vector: Vector) -> None:
    async def reword(exec: Any, next: Any) -> Any:
        return attrs.evolve(await next(), content=text("override"))

    rec.around("W", reword)
    rec.tool()
    result = await rec.call()
    vector.check(rec, result)
    assert result.content == text("ran:echo")


@vectors("pl-096-around")
async def test_a_wrapper_cannot_change_a_success(rec: Recorder, vector: Vector) -> None:
    async def change(exec: Any, next: Any) -> Any:
        result = await next()
        result.value = "changed"
        return result

    rec.around("W", change)
    rec.tool()
    result = await rec.call()
    vector.check(rec, result, code=unattributed(result))


async def test_a_wrapper_cannot_change_a_failure(rec: Recorder) -> None:
    """In place of pl-097-around."""

    async def change(exec: Any, next: Any) -> Any:
        result = await next()
        result.error.message = "changed"
        return result

    rec.around("W", change)
    rec.tool("echo", raising(HarnessError("original", code="OC")))
    result = await rec.call()
    assert result.is_error
    unattributed(result)
    assert "changed" not in str(result.content)


@vectors("pl-098-around")
async def test_a_wrapper_may_turn_a_failure_into_a_success(rec: Recorder, vector: Vector) -> None:
    async def fall_back(exec: Any, next: Any) -> Any:
        await next()
        return ToolExecutionSuccess(value="fallback", content=[])

    rec.passers()
    rec.around("W", fall_back)
    rec.tool("echo", raising(RuntimeError("body boom")))
    vector.check(rec, await rec.call())


# Bodies that raise


class SubError(HarnessError):
    default_code = "SUB"


class CodedError(Exception):
    code = "NOT_OURS"


def raise_none(*_: Any) -> Any:
    raise None  # type: ignore[misc]  # noqa: B016


def raise_bare(*_: Any) -> Any:
    raise


def raise_mapping(*_: Any) -> Any:
    raise {"message": "m"}  # type: ignore[misc]


RAISED: dict[str, Callable[..., Any]] = {
    "pl-104-body-throw": raising(HarnessError("coded", code="MY_CODE")),
    "pl-105-body-throw": raising(SubError("coded by its class")),
    "pl-106-body-throw": raising(CodedError("no HarnessError")),
    "pl-109-body-throw": raise_none,
    "pl-110-body-throw": raise_bare,
    "pl-111-body-throw": raise_mapping,
    "pl-114-body-throw": raising(Exception("")),
}


@vectors(
    "pl-104-body-throw",
    "pl-105-body-throw",
    "pl-106-body-throw",
    "pl-109-body-throw",
    "pl-110-body-throw",
    "pl-111-body-throw",
    "pl-114-body-throw",
)
async def test_a_body_that_raises_gives_a_failure(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.tool("echo", RAISED[vector.id])
    result = await rec.call()
    vector.check(rec, result)
    assert result.content == text(f"Error: {failure(result, code(result)).error.message}")


# Values, rendering, meta


CLOSED_OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
VALUES: dict[str, tuple[dict[str, Any], Any]] = {
    "pl-119-output": ({"type": "number"}, math.nan),
    "pl-121-output": ({"type": "integer"}, 1.5),
    "pl-126-output": (CLOSED_OBJECT, {"a": "x", "b": 1}),
}


@vectors("pl-119-output", "pl-121-output", "pl-126-output")
async def test_a_value_that_does_not_hold_fails_the_call(rec: Recorder, vector: Vector) -> None:
    schema, value = VALUES[vector.id]
    rec.passers()
    rec.tool("echo", lambda args, exec: value, schema=schema)
    vector.check(rec, await rec.call())


async def test_negative_zero_is_a_value_like_any_other(rec: Recorder) -> None:
    """In place of pl-120-output."""
    rec.tool("echo", lambda args, exec: -0.0, schema={"type": "number"})
    assert math.copysign(1, success(await rec.call()).value) == -1


async def rendered_later(args: Any, value: Any) -> Any:
    return text("later")


BAD_RENDERS: dict[str, Callable[..., Any]] = {
    "pl-131-render": lambda args, value: None,
    "pl-132-render": lambda args, value: [{"type": "text", "text": object()}],
    "pl-135-render": rendered_later,
}


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@vectors("pl-131-render", "pl-132-render", "pl-135-render")
async def test_a_rendering_that_does_not_hold_fails_the_call(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.tool(render=BAD_RENDERS[vector.id], meta=lambda args, value: {"m": 1})
    vector.check(rec, await rec.call())


@pytest.mark.parametrize("content", ["str", {"type": "text"}, [{"text": "no type"}], ["str"]])
async def test_a_rendering_has_to_be_a_list_of_blocks_that_each_have_a_type(rec: Recorder, content: Any) -> None:
    """In place of pl-133-render."""
    rec.tool(render=lambda args, value: content)
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")


@vectors("pl-134-render")
async def test_a_rendering_may_be_empty(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.tool(
        "echo",
        lambda args, exec: {"k": 1},
        schema=ANY_JSON,
        render=lambda args, value: [],
        meta=lambda args, value: {"m": 1},
    )
    result = await rec.call()
    vector.check(rec, result)
    assert list(result.content) == []


async def test_meta_that_is_none_means_no_meta(rec: Recorder) -> None:
    """In place of pl-138-meta and pl-140-meta."""
    rec.tool(meta=lambda args, value: None)
    assert success(await rec.call()).meta is None
    assert rec.count("meta") == 1


# Contexts and marks


@vectors("pl-141-context")
async def test_contexts_keep_their_order_and_listeners_add_after_the_tool(rec: Recorder, vector: Vector) -> None:
    def body(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        exec.defer_context(message("c2"))
        return "ok"

    rec.passers()
    rec.post("C", lambda exec, result, next: Accept(additional_contexts=[message("p1")]))
    rec.tool("echo", body)
    result = await rec.call()
    vector.check(rec, result)
    assert sources(result) == ["c1", "c2", "p1"]


@vectors("pl-143-context")
async def test_contexts_outlive_a_value_that_does_not_hold(rec: Recorder, vector: Vector) -> None:
    rec.tool("echo", lambda args, exec: exec.defer_context(message("c1")) or 5)
    result = await rec.call()
    vector.check(rec, result)
    assert sources(result) == ["c1"]


@vectors("pl-144-context")
async def test_a_block_drops_what_the_tool_deferred(rec: Recorder, vector: Vector) -> None:
    rec.post("B", lambda exec, result, next: Block("blocked"))
    rec.tool("echo", lambda args, exec: exec.defer_context(message("c1")) or "ok")
    vector.check(rec, await rec.call(), code="BLOCKED")


@vectors("pl-149-context")
async def test_a_wrappers_context_comes_after_those_of_the_tool(rec: Recorder, vector: Vector) -> None:
    async def add(exec: Any, next: Any) -> Any:
        result = await next()
        return attrs.evolve(result, additional_contexts=[*result.additional_contexts, message("w1")])

    rec.around("W", add)
    rec.tool("echo", lambda args, exec: exec.defer_context(message("c1")) or "ok")
    result = await rec.call()
    vector.check(rec, result)
    assert sources(result) == ["c1", "w1"]


@vectors("pl-151-conclude")
async def test_a_body_that_raises_concludes_nothing(rec: Recorder, vector: Vector) -> None:
    rec.tool("echo", lambda args, exec: exec.conclude_turn() or raising(RuntimeError("boom"))())
    vector.check(rec, await rec.call())


async def test_conclude_turn_may_be_called_off_its_object(rec: Recorder) -> None:
    """In place of pl-152-conclude."""

    def body(args: Any, exec: Any) -> str:
        conclude = exec.conclude_turn
        conclude()
        return "ok"

    rec.tool("echo", body)
    assert success(await rec.call()).concludes_turn


async def test_only_a_body_can_conclude_the_turn(rec: Recorder) -> None:
    """In place of pl-157-conclude."""
    rec.pre("C", lambda exec, next: exec.conclude_turn() or next())
    rec.tool()
    failure(await rec.call(), "LISTENER_FAILED")
