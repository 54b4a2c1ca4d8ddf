"""Contract 6.4: wrappers around the body, their view of the signal and what they may return."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from pipeline_kit import (
    ANY_JSON,
    Clockwork,
    Recorder,
    assert_lossless_and_frozen,
    failure,
    message,
    plugin,
    raising,
    sources,
    success,
    text,
    unattributed,
)

from dsh_runtime import (
    AbortController,
    AbortSignal,
    HarnessError,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionSuccess,
    ToolFailure,
)


async def test_next_gives_the_normalised_result_of_the_body(rec: Recorder) -> None:
    seen: list[Any] = []

    async def look(exec: Any, next: Any) -> Any:
        seen.append(await next())
        return seen[-1]

    rec.tool(meta=lambda args, value: {"m": 1})
    rec.around("A", look)
    success(await rec.call())
    assert (seen[0].value, seen[0].content, seen[0].meta) == ("ran:echo", text("ran:echo"), {"m": 1})


async def test_next_gives_a_failure_where_the_body_raised(rec: Recorder) -> None:
    seen: list[Any] = []

    async def look(exec: Any, next: Any) -> Any:
        seen.append(await next())
        return seen[-1]

    rec.tool("echo", raising(HarnessError("boom", code="BOOM")))
    rec.around("A", look)
    failure(await rec.call(), "BOOM")
    failure(seen[0], "BOOM")


async def test_a_wrapper_sees_the_definition_that_the_call_is_pinned_to(rec: Recorder) -> None:
    seen: list[Any] = []
    definition = rec.definition()
    undo = rec.ctx.tools.register(definition)

    def swap(exec: Any, next: Any) -> Any:
        undo()
        rec.tool()
        return next()

    rec.pre("S", swap)
    rec.around("A", lambda exec, next: seen.append(exec.definition) or next())
    await rec.call()
    assert seen == [definition]


async def test_a_wrapper_sees_no_definition_of_an_unknown_tool(rec: Recorder) -> None:
    seen: list[Any] = []
    rec.around("A", lambda exec, next: seen.append(exec.definition) or next())
    failure(await rec.call("missing"), "UNKNOWN_TOOL")
    assert seen == [None]


# Signals


async def test_what_lies_behind_sees_an_assigned_signal_and_what_lies_before_does_not(rec: Recorder) -> None:
    caller, outer, inner = AbortController(), AbortController(), AbortController()
    seen: dict[str, Any] = {}

    async def first(exec: Any, next: Any) -> Any:
        seen["outer before"] = exec.signal
        exec.signal = outer.signal
        result = await next()
        seen["outer after"] = exec.signal
        return result

    async def second(exec: Any, next: Any) -> Any:
        seen["inner before"] = exec.signal
        exec.signal = inner.signal
        return await next()

    rec.tool("echo", lambda args, exec: seen.update(body=exec.signal.aborted) or "ok")
    rec.around("A", first)
    rec.around("B", second)
    rec.post("Q", lambda exec, result, next: seen.update(post=exec.signal) or next())
    rec.observe("R", lambda exec, result: seen.update(result=exec.signal))
    success(await rec.call(signal=caller.signal))
    before = seen["outer before"]
    assert before not in (outer.signal, inner.signal)
    assert seen == {
        "outer before": before,
        "outer after": outer.signal,
        "inner before": outer.signal,
        "body": False,
        "post": before,
        "result": before,
    }


@pytest.mark.parametrize("which", ["outer", "inner", "caller"])
async def test_a_body_behind_two_wrappers_stops_for_caller_and_innermost_signal(rec: Recorder, which: str) -> None:
    """The caller's signal is fused back in right before the body; an outer signal counts if the inner one has it."""
    controllers = {name: AbortController() for name in ("caller", "outer", "inner")}

    async def first(exec: Any, next: Any) -> Any:
        exec.signal = controllers["outer"].signal
        return await next()

    async def second(exec: Any, next: Any) -> Any:
        exec.signal = AbortSignal.any([exec.signal, controllers["inner"].signal])
        return await next()

    async def body(args: Any, exec: Any) -> str:
        controllers[which].abort()
        assert exec.signal.aborted
        await trio.sleep_forever()
        return "never"

    rec.tool("echo", body)
    rec.around("A", first)
    rec.around("B", second)
    failure(await rec.call(signal=controllers["caller"].signal), "ABORTED")


async def test_a_wrappers_aborted_signal_ends_the_attempt_and_not_the_call(rec: Recorder) -> None:
    """A retry behind a deadline: the second attempt sees a fresh signal, not the first one's expired one."""
    seen: list[bool] = []
    deadlines: list[AbortController] = []

    async def retry(exec: Any, next: Any) -> Any:
        first = await next()
        failure(first, "ABORTED")
        return await next()

    async def deadline(exec: Any, next: Any) -> Any:
        seen.append(exec.signal.aborted)
        deadlines.append(AbortController())
        exec.signal = AbortSignal.any([exec.signal, deadlines[-1].signal])
        return await next()

    async def body(args: Any, exec: Any) -> str:
        if len(deadlines) == 1:
            deadlines[0].abort()
        await trio.lowlevel.checkpoint()
        return "second"

    rec.tool("echo", body)
    rec.around("A", retry)
    rec.around("B", deadline)
    result = await rec.call()
    assert seen == [False, False]
    assert success(result).value == "second"


@pytest.mark.parametrize("member", ["name", "arguments", "call_id", "agent", "parent", "root_call_id", "token"])
async def test_nothing_but_the_signal_can_be_assigned(rec: Recorder, member: str) -> None:
    refused: list[bool] = []

    def assign(exec: Any, next: Any) -> Any:
        before = getattr(exec, member)
        with pytest.raises((AttributeError, TypeError)):
            setattr(exec, member, "other")
        refused.append(getattr(exec, member) == before)
        return next()

    rec.tool()
    rec.around("A", assign)
    success(await rec.call())
    assert refused == [True]


async def test_a_signal_of_none_is_refused_where_it_is_assigned(rec: Recorder) -> None:
    refused: list[Any] = []

    def remove(exec: Any, next: Any) -> Any:
        before = exec.signal
        with pytest.raises((TypeError, ValueError, HarnessError)):
            exec.signal = None
        refused.append(exec.signal is before)
        return next()

    rec.tool()
    rec.around("A", remove)
    success(await rec.call())
    assert refused == [True]


# Results


async def test_the_very_result_of_the_dispatch_is_kept_as_it_is(rec: Recorder) -> None:
    async def keep(exec: Any, next: Any) -> Any:
        return await next()

    rec.tool(meta=lambda args, value: {"m": 1})
    rec.around("A", keep)
    rec.around("B", keep)
    success(await rec.call())
    assert (rec.count("render"), rec.count("meta")) == (1, 1)


async def test_the_result_of_an_earlier_attempt_is_one_of_the_dispatchs_own(rec: Recorder) -> None:
    async def first_of_two(exec: Any, next: Any) -> Any:
        first = await next()
        await next()
        return first

    rec.tool("echo", lambda args, exec: f"attempt {rec.count('body:')}")
    rec.around("A", first_of_two)
    assert success(await rec.call()).value == "attempt 1"
    assert rec.count("render") == 2


async def test_a_foreign_result_is_checked_rendered_and_gets_its_meta(rec: Recorder) -> None:
    rec.tool(meta=lambda args, value: {"m": value})
    rec.around("A", lambda exec, next: ToolExecutionSuccess(value="own", content=text("ignored"), meta="ignored"))
    result = success(await rec.call())
    assert (result.value, result.content, result.meta) == ("own", text("own"), {"m": "own"})
    assert not rec.body_ran


async def test_the_result_of_another_call_is_foreign(rec: Recorder) -> None:
    rec.tool()
    earlier = await rec.call()
    rec.stages.clear()
    rec.around("A", lambda exec, next: earlier)
    assert success(await rec.call()).value == "ran:echo"
    assert rec.count("render") == 1


async def test_a_foreign_result_of_another_tool_has_to_hold_this_tools_schema(rec: Recorder) -> None:
    rec.tool()
    rec.tool("number", lambda args, exec: 5, schema={"type": "number"})
    number = await rec.call("number")
    rec.around("A", lambda exec, next: number if exec.name == "echo" else next())
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")


@pytest.mark.parametrize("value", [5, object(), float("nan"), None])
async def test_a_foreign_value_that_does_not_hold_goes_straight_to_the_finish(rec: Recorder, value: Any) -> None:
    rec.tool()
    rec.post("Q")
    rec.around("A", lambda exec, next: ToolExecutionSuccess(value=value, content=[]))
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")
    assert rec.count("post-execute:") == 0
    assert rec.count("finalize") == 1


async def test_a_foreign_value_is_detached_and_frozen(rec: Recorder) -> None:
    value = {"a": [1]}
    rec.tool("echo", schema=ANY_JSON)
    rec.around("A", lambda exec, next: ToolExecutionSuccess(value=value, content=[]))
    result = success(await rec.call())
    value["a"].append(2)
    assert result.value == {"a": [1]}
    with pytest.raises(TypeError):
        result.value["a"].append(3)


async def test_a_foreign_failure_stands_and_is_seen_by_post_listeners(rec: Recorder) -> None:
    own = ToolExecutionFailure(
        error=ToolFailure("quota", ToolErrorInfo("QuotaError", "QUOTA")), content=text("Error: quota")
    )
    rec.tool()
    rec.post("Q")
    rec.around("A", lambda exec, next: own)
    assert failure(await rec.call(), "QUOTA").error.message == "quota"
    assert rec.count("post-execute:Q") == 1
    assert not rec.body_ran


@pytest.mark.parametrize("answer", [None, "value", {"value": "x"}, True], ids=repr)
async def test_an_answer_that_is_no_result_fails_the_call(rec: Recorder, answer: Any) -> None:
    rec.tool()
    rec.post("Q")
    rec.around("A", lambda exec, next: answer)
    unattributed(await rec.call())
    assert rec.count("post-execute:") == 0


async def test_a_wrapper_that_raises_goes_straight_to_the_finish(rec: Recorder) -> None:
    rec.passers()
    rec.tool()
    rec.around("A", raising(RuntimeError("boom")))
    result = await rec.call()
    assert result.is_error
    assert "boom" in result.error.message
    assert rec.stages[-2:] == [f"finalize(isError=true,code={unattributed(result) or 'null'})", "result:R"]
    assert rec.count("post-execute:") == 0


async def test_a_wrappers_own_code_is_kept(rec: Recorder) -> None:
    rec.tool()
    rec.around("A", raising(HarnessError("late", code="TOOL_TIMEOUT")))
    failure(await rec.call(), "TOOL_TIMEOUT")


async def test_a_wrapper_that_fails_is_named(host: Any) -> None:
    from pipeline_kit import Plugin

    rec = Recorder(host.ctx)
    rec.tool()
    await host.ctx.plugin(Plugin("metrics", lambda ctx: ctx.on("tools/execute", raising_wrapper))).wait()
    assert plugin(await rec.call()) == "metrics"


def raising_wrapper(next: Any) -> Any:
    raise RuntimeError("boom")


async def test_a_wrapper_may_not_pass_a_copy_with_a_value_that_does_not_hold(rec: Recorder) -> None:
    async def spoil(exec: Any, next: Any) -> Any:
        return attrs.evolve(await next(), value=5)

    rec.tool()
    rec.around("A", spoil)
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")


async def test_a_retry_does_not_inherit_the_failed_attempts_mark(rec: Recorder) -> None:
    async def retry(exec: Any, next: Any) -> Any:
        first = await next()
        return await next() if first.is_error else first

    def body(args: Any, exec: Any) -> str:
        if rec.count("body:") == 1:
            exec.conclude_turn()
            raise RuntimeError("first attempt")
        return "second"

    rec.tool("echo", body)
    rec.around("A", retry)
    assert success(await rec.call()).concludes_turn is False


async def test_a_wrappers_own_contexts_are_kept(rec: Recorder) -> None:
    own = ToolExecutionSuccess(value="own", content=[], additional_contexts=[message("w1")])
    rec.tool()
    rec.around("A", lambda exec, next: own)
    assert sources(await rec.call()) == ["w1"]


async def test_a_wrappers_own_contexts_are_detached_and_frozen(rec: Recorder) -> None:
    context = message("w1")
    own = ToolExecutionSuccess(value="own", content=[], additional_contexts=[context])
    rec.tool()
    rec.around("A", lambda exec, next: own)
    result = success(await rec.call())
    context.content[0]["text"] = "changed"
    assert result.additional_contexts[0].content == text("w1")
    assert_lossless_and_frozen(result)


@pytest.mark.parametrize("contexts", [["text"], [None], 5], ids=repr)
async def test_contexts_of_a_wrapper_that_are_none_are_an_error(rec: Recorder, contexts: Any) -> None:
    own = ToolExecutionSuccess(value="own", content=[], additional_contexts=contexts)
    rec.tool()
    rec.observe("R")
    rec.around("A", lambda exec, next: own)
    result = await rec.call()
    assert result.is_error
    assert_lossless_and_frozen(result)
    assert rec.results == [result]


RUBBISH_FAILURES = {
    "message": ToolExecutionFailure(error=ToolFailure(5), content=[]),  # type: ignore[arg-type]
    "error": ToolExecutionFailure(error="boom", content=[]),  # type: ignore[arg-type]
    "content": ToolExecutionFailure(error=ToolFailure("boom"), content="boom"),  # type: ignore[arg-type]
    "meta": ToolExecutionFailure(error=ToolFailure("boom"), content=[], meta=object()),  # type: ignore[arg-type]
    "info": ToolExecutionFailure(error=ToolFailure("boom", "info"), content=[]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("own", RUBBISH_FAILURES.values(), ids=RUBBISH_FAILURES)
async def test_a_foreign_failure_made_of_rubbish_is_still_one_good_failure(rec: Recorder, own: Any) -> None:
    rec.tool()
    rec.observe("R")
    rec.around("A", lambda exec, next: own)
    result = await rec.call()
    assert result.is_error
    assert isinstance(result.error.message, str)
    assert_lossless_and_frozen(result)
    assert rec.results == [result]
    assert rec.count("finalize") == 1


async def test_two_attempts_side_by_side_both_rest_before_the_call_ends(rec: Recorder) -> None:
    step = Clockwork()
    ended: list[int] = []

    async def race(exec: Any, next: Any) -> Any:
        async def slow() -> None:
            await next()
            ended.append(1)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(slow)
            await step.reached.wait()
            result = await next()
            step.go.set()
        return result

    async def body(args: Any, exec: Any) -> str:
        if rec.count("body:") == 1:
            await step.stop()
            return "slow"
        return "fast"

    rec.tool("echo", body)
    rec.around("A", race)
    assert success(await rec.call()).value == "fast"
    assert ended == [1]
