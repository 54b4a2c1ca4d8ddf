"""Conformance of what comes after the body: post-execute listeners, finalizers, observers, late aborts."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from pipeline_kit import (
    Clockwork,
    Recorder,
    code,
    failure,
    message,
    raising,
    success,
    text,
    unattributed,
)
from pipeline_vectors import Vector, vectors

from dsh_runtime import (
    AbortController,
    Accept,
    Block,
    Deny,
    HarnessError,
)

# Post-execute


@vectors("pl-158-post")
async def test_accepted_content_leaves_value_and_meta(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.post("C", lambda exec, result, next: Accept(content=text("replaced")))
    rec.tool(meta=lambda args, value: {"m": value})
    result = await rec.call()
    vector.check(rec, result)
    assert (result.content, result.meta) == (text("replaced"), {"m": "ran:echo"})


@vectors("pl-159-post")
async def test_an_accepted_value_is_rendered_and_gets_its_meta_anew(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.post("C", lambda exec, result, next: Accept(value="replaced"))
    rec.tool(meta=lambda args, value: {"m": value})
    result = await rec.call()
    vector.check(rec, result)
    assert (result.content, result.meta) == (text("replaced"), {"m": "replaced"})


@vectors("pl-160-post")
async def test_content_and_value_together_fail_the_call(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.post("C", lambda exec, result, next: Accept(content=text("c"), value="v"))
    rec.tool()
    vector.check(rec, await rec.call(), code="LISTENER_FAILED")


@vectors("pl-163-post")
async def test_an_accepted_value_has_to_hold(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.post("C", lambda exec, result, next: Accept(value=5))
    rec.tool()
    vector.check(rec, await rec.call())


@vectors("pl-165-post")
async def test_new_content_leaves_a_failure_what_it_was(rec: Recorder, vector: Vector) -> None:
    rec.post("C", lambda exec, result, next: Accept(content=text("softened")))
    rec.tool("echo", raising(HarnessError("original", code="OC")))
    result = await rec.call()
    vector.check(rec, result)
    assert result.content == text("softened")
    assert failure(result, "OC").error.message == "original"


@vectors("pl-167-post")
async def test_a_block_may_have_no_blocks_of_feedback(rec: Recorder, vector: Vector) -> None:
    rec.post("C", lambda exec, result, next: Block([]))
    rec.tool()
    vector.check(rec, await rec.call(), code="BLOCKED")


@vectors("pl-168-post")
async def test_the_feedback_of_a_block_is_the_content(rec: Recorder, vector: Vector) -> None:
    feedback = [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, *text("look")]
    rec.post("C", lambda exec, result, next: Block(feedback))
    rec.tool()
    result = await rec.call()
    vector.check(rec, result, code="BLOCKED")
    assert result.content == feedback


@vectors("pl-173-post")
async def test_a_post_listener_that_returns_nothing_fails_the_call(rec: Recorder, vector: Vector) -> None:
    rec.post("U", lambda exec, result, next: None)
    rec.tool()
    vector.check(rec, await rec.call(), code="LISTENER_FAILED")


@vectors("pl-175-post")
async def test_accepted_content_has_to_be_json(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.post("C", lambda exec, result, next: Accept(content=[{"type": "text", "text": print}]))
    rec.tool()
    result = await rec.call()
    assert code(result) in ("LISTENER_FAILED", "INVALID_TOOL_OUTPUT")
    vector.check(rec, result, code=code(result))


async def test_a_post_listener_cannot_change_a_failure(rec: Recorder) -> None:
    """In place of pl-179-post."""

    def change(exec: Any, result: Any, next: Any) -> Any:
        result.error.message = "changed"
        return next()

    rec.post("M", change)
    rec.tool("echo", raising(RuntimeError("original")))
    assert "changed" not in failure(await rec.call(), "LISTENER_FAILED").error.message.split()


async def test_a_tool_that_went_during_its_call_still_checks_a_replaced_value(rec: Recorder) -> None:
    """In place of pl-180-post."""
    undo = rec.tool("echo", lambda args, exec: undo() or "ok")
    rec.post("C", lambda exec, result, next: Accept(value="replaced"))
    result = success(await rec.call())
    assert (result.value, result.content) == ("replaced", text("replaced"))


@vectors("pl-181-post")
async def test_a_tool_that_went_during_its_call_still_succeeds(rec: Recorder, vector: Vector) -> None:
    undo = rec.tool("echo", lambda args, exec: undo() or "ok")
    vector.check(rec, await rec.call())


# Finalizers


@vectors("pl-182-finalize")
async def test_a_finalizer_replaces_the_content(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.tool(finalize=lambda exec, result: text("final"))
    result = await rec.call()
    vector.check(rec, result)
    assert result.content == text("final")


@vectors("pl-184-finalize")
async def test_a_finalizers_error_replaces_the_one_before(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.tool("echo", raising(RuntimeError("body")), finalize=raising(HarnessError("finalizer", code="FC")))
    vector.check(rec, await rec.call(), finalized="null")


@vectors("pl-187-finalize")
async def test_a_finalizer_may_leave_no_content(rec: Recorder, vector: Vector) -> None:
    rec.tool(finalize=lambda exec, result: [])
    result = await rec.call()
    vector.check(rec, result)
    assert list(result.content) == []


async def test_a_finalizer_that_returns_none_keeps_the_content(rec: Recorder) -> None:
    """In place of pl-188-finalize."""
    rec.tool(finalize=lambda exec, result: None)
    assert (await rec.call()).content == text("ran:echo")


@vectors("pl-189-finalize")
async def test_a_finalizer_cannot_change_the_result(rec: Recorder, vector: Vector) -> None:
    rec.tool(finalize=lambda exec, result: setattr(result, "value", "changed"))
    result = await rec.call()
    assert result.is_error
    vector.check(rec, result, code=code(result))


@vectors("pl-190-finalize")
async def test_a_finalizer_that_raises_drops_contexts_and_the_mark(rec: Recorder, vector: Vector) -> None:
    def body(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        exec.conclude_turn()
        return "ok"

    rec.tool("echo", body, finalize=raising(RuntimeError("finalizer boom")))
    result = await rec.call()
    vector.check(rec, result, code=code(result))


FAILURES: dict[str, Callable[[Recorder], Any]] = {
    "pl-191-finalize-once": lambda rec: rec.pre("D", lambda exec, next: Deny("no")),
    "pl-192-finalize-once": lambda rec: rec.pre("D", raising(RuntimeError("pre boom"))),
    "pl-195-finalize-once": lambda rec: rec.around("W", raising(RuntimeError("wrapper boom"))),
    "pl-196-finalize-once": lambda rec: rec.post("W", raising(RuntimeError("post boom"))),
    "pl-197-finalize-once": lambda rec: rec.post("W", lambda exec, result, next: Block("blocked")),
}
CODES = {
    "pl-191-finalize-once": "DENIED",
    "pl-192-finalize-once": "LISTENER_FAILED",
    "pl-196-finalize-once": "LISTENER_FAILED",
    "pl-197-finalize-once": "BLOCKED",
}


@vectors(
    "pl-191-finalize-once",
    "pl-192-finalize-once",
    "pl-195-finalize-once",
    "pl-196-finalize-once",
    "pl-197-finalize-once",
)
async def test_the_finalizer_runs_once_whatever_failed(rec: Recorder, vector: Vector) -> None:
    FAILURES[vector.id](rec)
    rec.tool()
    result = await rec.call()
    vector.check(rec, result, code=CODES.get(vector.id) or unattributed(result))


@vectors("pl-199-finalize-once")
async def test_the_finalizer_runs_once_for_a_call_aborted_on_entry(rec: Recorder, vector: Vector) -> None:
    caller = AbortController()
    caller.abort()
    rec.tool()
    vector.check(rec, await rec.call(signal=caller.signal))


async def test_body_and_finalizer_of_a_call_are_of_one_version(rec: Recorder) -> None:
    """In place of pl-200-finalize."""
    undo = rec.tool("echo", lambda args, exec: "old body", finalize=lambda exec, result: text("old finalizer"))

    def swap(exec: Any, next: Any) -> Any:
        undo()
        rec.tool("echo", lambda args, exec: "new body", finalize=lambda exec, result: text("new finalizer"))
        return next()

    rec.pre("S", swap)
    result = success(await rec.call())
    assert (result.value, result.content) == ("old body", text("old finalizer"))


# Observers


@vectors("pl-202-result")
async def test_an_observer_that_raises_harms_neither_call_nor_the_next(rec: Recorder, vector: Vector) -> None:
    rec.observe("R1", raising(RuntimeError("observer boom")))
    rec.observe("R2")
    rec.tool()
    vector.check(rec, await rec.call())


@vectors("pl-204-result")
async def test_an_observer_cannot_change_the_result(rec: Recorder, vector: Vector) -> None:
    rec.observe("R1", lambda exec, result: setattr(result, "value", "changed"))
    rec.tool()
    vector.check(rec, await rec.call())


@vectors("pl-205-result")
async def test_observers_run_in_order_and_prepended_ones_first(rec: Recorder, vector: Vector) -> None:
    rec.observe("R1")
    rec.observe("R2")
    rec.observe("R0", prepend=True)
    rec.tool()
    vector.check(rec, await rec.call())


# Aborting during the dispatch and after it


@pytest.fixture
def caller() -> AbortController:
    return AbortController()


@vectors("pl-214-abort")
async def test_an_abort_in_a_wrapper_before_the_body_skips_the_body(
    rec: Recorder, vector: Vector, caller: AbortController
) -> None:
    rec.passers()
    rec.around("A", lambda exec, next: caller.abort() and next())
    rec.tool()
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-215-abort")
async def test_an_abort_beats_a_wrappers_own_success(rec: Recorder, vector: Vector, caller: AbortController) -> None:
    from dsh_runtime import ToolExecutionSuccess

    rec.passers()
    rec.around("A", lambda exec, next: caller.abort() and ToolExecutionSuccess(value="own", content=[]))
    rec.tool()
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-216-abort")
async def test_a_success_after_an_abort_is_aborted(rec: Recorder, vector: Vector, caller: AbortController) -> None:
    rec.passers()
    rec.tool("echo", lambda args, exec: caller.abort() and "ignored")
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-218-abort")
async def test_a_failure_with_a_code_outlives_an_abort(rec: Recorder, vector: Vector, caller: AbortController) -> None:
    def body(args: Any, exec: Any) -> Any:
        caller.abort()
        raise HarnessError("late", code="TIMEOUTISH")

    rec.tool("echo", body)
    vector.check(rec, await rec.call(signal=caller.signal))


async def test_a_body_that_raises_the_reason_of_its_signal_is_aborted(rec: Recorder, caller: AbortController) -> None:
    """In place of pl-219-abort."""

    def body(args: Any, exec: Any) -> Any:
        caller.abort()
        exec.signal.throw_if_aborted()

    rec.tool("echo", body)
    failure(await rec.call(signal=caller.signal), "ABORTED")


@vectors("pl-220-abort")
async def test_a_value_that_does_not_hold_outlives_an_abort(
    rec: Recorder, vector: Vector, caller: AbortController
) -> None:
    rec.tool("echo", lambda args, exec: caller.abort() and 5)
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-221-abort")
async def test_contexts_outlive_an_abort(rec: Recorder, vector: Vector, caller: AbortController) -> None:
    def body(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        caller.abort()
        return "ignored"

    rec.tool("echo", body)
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-222-abort")
async def test_an_abort_while_rendering_is_aborted(rec: Recorder, vector: Vector, caller: AbortController) -> None:
    rec.tool(render=lambda args, value: caller.abort() and text("late"))
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-224-abort")
async def test_an_abort_in_a_post_listener_is_aborted_and_keeps_contexts(
    rec: Recorder, vector: Vector, caller: AbortController
) -> None:
    def accept(exec: Any, result: Any, next: Any) -> Any:
        caller.abort()
        return Accept(content=text("new"), additional_contexts=[message("p1")])

    rec.passers()
    rec.post("A", accept)
    rec.tool()
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-229-abort")
async def test_a_post_listener_may_reword_an_abort_but_not_undo_it(
    rec: Recorder, vector: Vector, caller: AbortController
) -> None:
    rec.post("Q", lambda exec, result, next: Accept(content=text("softened")))
    rec.tool("echo", lambda args, exec: caller.abort() and "ignored")
    result = await rec.call(signal=caller.signal)
    vector.check(rec, result)
    assert result.content == text("softened")


@vectors("pl-230-abort")
async def test_a_body_that_takes_its_time_after_an_abort_is_waited_for(
    rec: Recorder, vector: Vector, caller: AbortController
) -> None:
    step = Clockwork()
    results: list[Any] = []

    async def body(args: Any, exec: Any) -> str:
        with trio.CancelScope(shield=True):
            await step.stop()
        rec.log("body-settled")
        return "late"

    async def call() -> None:
        results.append(await rec.call(signal=caller.signal))

    rec.tool("echo", body)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await step.reached.wait()
        caller.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert not results
        step.go.set()
    vector.check(rec, results[0])
