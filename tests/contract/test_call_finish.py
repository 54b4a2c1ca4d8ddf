"""Contract 6.6: finalizers, the frozen result and its observers."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from pipeline_kit import (
    ANY_JSON,
    Approval,
    Plugin,
    Recorder,
    assert_lossless_and_frozen,
    code,
    failure,
    message,
    raising,
    success,
    text,
)

from dsh_runtime import (
    AbortController,
    Accept,
    Ask,
    Block,
    ContextMessage,
    Deny,
    HarnessError,
    ToolExecutionSuccess,
)


def prepare(rec: Recorder, case: str) -> dict[str, Any]:
    """Make the next call of ``echo`` end in a certain way; gives what the call needs."""
    caller = AbortController()
    listeners: dict[str, Callable[[], Any]] = {
        "denied": lambda: rec.pre("D", lambda exec, next: Deny("no")),
        "pre raises": lambda: rec.pre("D", raising(RuntimeError("boom"))),
        "asked in vain": lambda: rec.pre("D", lambda exec, next: Ask()),
        "rejected": lambda: (
            rec.ctx.provide("approval", Approval("rejected")) and rec.pre("D", lambda exec, next: Ask())
        ),
        "approval raises": lambda: (
            rec.ctx.provide("approval", Approval(then=raising(RuntimeError("boom"))))
            and rec.pre("D", lambda exec, next: Ask())
        ),
        "guarded": lambda: rec.guard("G", "no"),
        "guard raises": lambda: rec.guard("G", raising(RuntimeError("boom"))),
        "wrapper raises": lambda: rec.around("W", raising(RuntimeError("boom"))),
        "wrapper rubbish": lambda: rec.around("W", lambda exec, next: 5),
        "wrapper value": lambda: rec.around("W", lambda exec, next: ToolExecutionSuccess(value=5, content=[])),
        "post raises": lambda: rec.post("Q", raising(RuntimeError("boom"))),
        "blocked": lambda: rec.post("Q", lambda exec, result, next: Block("no")),
        "post content": lambda: rec.post("Q", lambda exec, result, next: Accept(content="rubbish")),
        "aborted on entry": caller.abort,
        "aborted in pre": lambda: rec.pre("D", lambda exec, next: caller.abort() and next()),
        "aborted in post": lambda: rec.post("Q", lambda exec, result, next: caller.abort() and next()),
    }
    bodies: dict[str, Callable[..., Any]] = {
        "body raises": raising(RuntimeError("boom")),
        "invalid output": lambda args, exec: 5,
        "aborted in body": lambda args, exec: caller.abort() and "ok",
    }
    listeners.get(case, lambda: None)()
    rec.tool("echo", bodies.get(case))
    arguments = {"x": object()} if case == "invalid arguments" else {}
    return {"arguments": arguments, "signal": caller.signal, "agent": rec.ctx.scope().key}


CASES = {
    "succeeds": None,
    "invalid arguments": "INVALID_ARGS",
    "denied": "DENIED",
    "pre raises": "LISTENER_FAILED",
    "asked in vain": "APPROVAL_UNAVAILABLE",
    "rejected": "APPROVAL_REJECTED",
    "approval raises": "LISTENER_FAILED",
    "guarded": "GUARDED",
    "guard raises": "LISTENER_FAILED",
    "wrapper raises": ...,
    "wrapper rubbish": ...,
    "wrapper value": "INVALID_TOOL_OUTPUT",
    "body raises": None,
    "invalid output": "INVALID_TOOL_OUTPUT",
    "post raises": "LISTENER_FAILED",
    "blocked": "BLOCKED",
    "post content": ...,
    "aborted on entry": "ABORTED_BEFORE_DISPATCH",
    "aborted in pre": "ABORTED_BEFORE_DISPATCH",
    "aborted in body": "ABORTED",
    "aborted in post": "ABORTED",
}


@pytest.mark.parametrize(("case", "expected"), CASES.items(), ids=CASES)
async def test_whatever_happens_one_finalizer_runs_and_one_result_is_observed(
    rec: Recorder, case: str, expected: Any
) -> None:
    rec.observe("R")
    result = await rec.call(**prepare(rec, case))
    assert result.is_error is (case != "succeeds")
    if expected is not ...:
        assert code(result) == expected
    assert rec.count("finalize") == 1
    assert rec.count("result:R") == 1
    assert rec.stages[-1] == "result:R"
    assert rec.results[0] is result
    assert_lossless_and_frozen(result)


@pytest.mark.parametrize("case", [case for case in CASES if case != "blocked"])
async def test_the_content_of_a_failure_is_its_message(rec: Recorder, case: str) -> None:
    result = await rec.call(**prepare(rec, case))
    if result.is_error:
        assert result.content == text(f"Error: {result.error.message}")
        assert result.error.message


SURROGATE = "lone \ud800 surrogate"


async def test_a_source_that_json_cannot_carry_never_reaches_a_result(rec: Recorder) -> None:
    broken = ContextMessage(content=text("fine"), source=SURROGATE)
    rec.tool("echo", lambda args, exec: exec.defer_context(broken) or "ok")
    result = await rec.call()
    assert result.is_error
    assert all(context.source.encode() for context in result.additional_contexts)


@pytest.mark.parametrize("given", [SURROGATE, 5], ids=ascii)
async def test_a_code_that_json_cannot_carry_never_reaches_a_result(rec: Recorder, given: Any) -> None:
    rec.tool("echo", raising(HarnessError("boom", code=given)))
    shown = code(await rec.call())
    assert shown is None or (isinstance(shown, str) and shown.encode())


# Finalizers


async def test_a_finalizer_gets_the_execution_and_the_whole_result(rec: Recorder) -> None:
    seen: list[Any] = []

    def body(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        return "ok"

    rec.tool("echo", body, finalize=lambda exec, result: seen.append((exec.call_id, exec.arguments, result)))
    await rec.call(arguments={"x": 1}, call_id="mine")
    ((call_id, arguments, result),) = seen
    assert (call_id, arguments, result.value) == ("mine", {"x": 1}, "ok")
    assert_lossless_and_frozen(result)


async def test_a_finalizer_changes_the_content_and_nothing_else(rec: Recorder) -> None:
    def body(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        exec.conclude_turn()
        return "ok"

    rec.tool("echo", body, meta=lambda args, value: {"m": 1}, finalize=lambda exec, result: text("short"))
    result = success(await rec.call())
    assert (result.value, result.content, result.meta) == ("ok", text("short"), {"m": 1})
    assert (len(result.additional_contexts), result.concludes_turn) == (1, True)


async def test_a_finalizer_may_reword_a_failure_which_stays_one(rec: Recorder) -> None:
    rec.tool("echo", raising(HarnessError("boom", code="BOOM")), finalize=lambda exec, result: text("oh"))
    result = failure(await rec.call(), "BOOM")
    assert (result.content, result.error.message) == (text("oh"), "boom")


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1)], ids=repr)
async def test_a_finalizer_that_raises_makes_the_result_an_error(rec: Recorder, error: BaseException) -> None:
    rec.observe("R")
    rec.tool("echo", lambda args, exec: "secret", finalize=raising(error))
    result = await rec.call()
    assert result.is_error
    assert rec.results == [result]
    assert "secret" not in str(result)


@pytest.mark.parametrize("content", ["plain", [{"text": "x"}], [{"type": "text", "text": b"x"}], 5], ids=repr)
async def test_a_finalizer_that_gives_no_content_makes_the_result_an_error(rec: Recorder, content: Any) -> None:
    rec.observe("R")
    rec.tool(finalize=lambda exec, result: content)
    result = await rec.call()
    assert result.is_error
    assert rec.results == [result]
    assert_lossless_and_frozen(result)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_a_finalizer_is_sync(rec: Recorder) -> None:
    async def later(exec: Any, result: Any) -> Any:
        return text("later")

    rec.tool(finalize=later)
    assert (await rec.call()).is_error


async def test_an_unknown_tool_has_no_finalizer(rec: Recorder) -> None:
    rec.tool()
    rec.observe("R")
    failure(await rec.call("missing"), "UNKNOWN_TOOL")
    assert rec.count("finalize") == 0


async def test_what_a_finalizer_gives_is_detached(rec: Recorder) -> None:
    content = text("short")
    rec.tool(finalize=lambda exec, result: content)
    result = await rec.call()
    content[0]["text"] = "changed"
    assert result.content == text("short")


# Observers


@pytest.mark.parametrize("event", ["tools/result", "tools/progress", "tools/change"])
async def test_an_async_observer_is_refused_with_advice(rec: Recorder, event: str) -> None:
    async def observer() -> None: ...

    with pytest.raises(Exception, match=r"(?s)sync.*task|task.*sync"):
        rec.ctx.on(event, observer)


async def test_an_observer_that_raises_is_logged_with_its_plugin(host: Any, caplog: pytest.LogCaptureFixture) -> None:
    rec = Recorder(host.ctx)
    rec.tool()

    def fail(result: Any) -> None:
        raise RuntimeError("observer boom")

    clumsy = Plugin("clumsy", lambda ctx: ctx.on("tools/result", fail))
    await host.ctx.plugin(clumsy).wait()
    rec.observe("R")
    with caplog.at_level(logging.WARNING):
        success(await rec.call())
    assert rec.count("result:R") == 1
    assert "clumsy" in caplog.text


async def test_system_exit_in_an_observer_is_contained(rec: Recorder) -> None:
    rec.observe("A", raising(SystemExit(1)))
    rec.observe("B")
    rec.tool()
    success(await rec.call())
    assert rec.count("result:B") == 1


async def test_keyboard_interrupt_in_an_observer_goes_on_once_all_have_observed(rec: Recorder) -> None:
    rec.observe("A", raising(KeyboardInterrupt()))
    rec.observe("B")
    rec.tool()
    with pytest.raises(KeyboardInterrupt):
        await rec.call()
    assert rec.count("result:B") == 1


async def test_every_observer_gets_the_object_that_execute_returns(rec: Recorder) -> None:
    rec.observe("A")
    rec.observe("B")
    rec.tool()
    result = await rec.call()
    assert all(seen is result for seen in rec.results)
    assert len(rec.results) == 2


async def test_an_observer_gets_the_calls_own_execution(rec: Recorder) -> None:
    tokens: list[Any] = []
    rec.pre("P", lambda exec, next: tokens.append(exec.token) or next())
    rec.observe("R", lambda exec, result: tokens.append(exec.token))
    rec.tool("echo", lambda args, exec: tokens.append(exec.token) or "ok")
    await rec.call()
    assert len(tokens) == 3
    assert len(set(tokens)) == 1


async def test_observers_are_filtered_by_scope(rec: Recorder) -> None:
    one, two = rec.ctx.scope(), rec.ctx.scope()
    rec.observe("one", ctx=one.ctx)
    rec.observe("two", ctx=two.ctx)
    rec.tool()
    await rec.call(agent=one.key)
    assert [stage for stage in rec.stages if stage.startswith("result")] == ["result:one"]


async def test_the_results_members_have_no_way_back_to_what_made_them(rec: Recorder) -> None:
    meta, context = {"m": [1]}, message("c1")
    rec.tool("echo", lambda args, exec: exec.defer_context(context) or {"a": 1}, schema=ANY_JSON, meta=lambda *_: meta)
    result = success(await rec.call())
    meta["m"].append(2)
    context.content[0]["text"] = "changed"
    assert result.meta == {"m": [1]}
    assert result.additional_contexts[0].content == text("c1")
