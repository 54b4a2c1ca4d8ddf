"""Contract 6, cancellation of the trio scope that the caller runs in; and what is never swallowed."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from pipeline_kit import (
    Clockwork,
    Recorder,
    assert_lossless_and_frozen,
    callbacks_of,
    code,
    failure,
    message,
    plain,
    sources,
)

from dsh_runtime import AbortController, Ask


class Caller:
    """Calls ``echo`` in a scope of its own, which the test may cancel."""

    def __init__(self, rec: Recorder, nursery: trio.Nursery) -> None:
        self.scope = trio.CancelScope()
        self.controller = AbortController()
        self.returned: list[Any] = []
        self.ended = trio.Event()
        self._rec = rec
        self._nursery = nursery

    def start(self, **more: Any) -> None:
        self._nursery.start_soon(self._run, more)

    async def _run(self, more: dict[str, Any]) -> None:
        with self.scope:
            self.returned.append(await self._rec.call(signal=self.controller.signal, **more))
        self.ended.set()


@pytest.fixture
def caller(rec: Recorder, nursery: trio.Nursery) -> Caller:
    rec.observe("R")
    return Caller(rec, nursery)


async def cancelled_while_waiting(caller: Caller, step: Clockwork, **more: Any) -> None:
    """Start the call, cancel its scope once it waits at ``step``, and wait for its end."""
    caller.start(**more)
    await step.reached.wait()
    caller.scope.cancel()
    await caller.ended.wait()
    assert caller.scope.cancelled_caught
    assert not caller.returned


async def test_in_an_async_body_the_cancellation_goes_on_and_one_aborted_result_is_observed(
    rec: Recorder, caller: Caller
) -> None:
    step = Clockwork()
    rec.tool("echo", lambda args, exec: step.stop())
    await cancelled_while_waiting(caller, step)
    (result,) = rec.results
    assert_lossless_and_frozen(failure(result, "ABORTED"))
    assert rec.count("finalize") == 1


async def test_the_bodys_signal_is_aborted_before_the_body_unwinds(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()
    seen: list[Any] = []

    async def body(args: Any, exec: Any) -> str:
        try:
            await step.stop()
        finally:
            seen.append((exec.signal.aborted, exec.signal.reason is not None))
        return "never"

    rec.tool("echo", body)
    await cancelled_while_waiting(caller, step)
    assert seen == [(True, True)]


async def test_a_body_that_waits_for_its_signal_ends_when_its_caller_is_cancelled(
    rec: Recorder, caller: Caller
) -> None:
    step = Clockwork()

    async def body(args: Any, exec: Any) -> str:
        step.reached.set()
        await exec.signal.wait()
        return "never"

    rec.tool("echo", body)
    await cancelled_while_waiting(caller, step)
    failure(rec.results[0], "ABORTED")
    assert len(rec.results) == 1


async def test_the_callers_own_signal_is_left_alone(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()
    rec.tool("echo", lambda args, exec: step.stop())
    await cancelled_while_waiting(caller, step)
    assert not caller.controller.signal.aborted
    assert callbacks_of(caller.controller.signal) == 0


async def test_a_threaded_body_that_polls_its_signal_sees_it_and_is_waited_for(rec: Recorder, caller: Caller) -> None:
    token = trio.lowlevel.current_trio_token()
    entered = trio.Event()
    seen = threading.Event()

    def body(args: Any, exec: Any) -> str:
        pause = threading.Event()
        token.run_sync_soon(entered.set)
        for _ in range(1000):
            if exec.signal.aborted:
                seen.set()
                return "saw it"
            pause.wait(0.01)
        return "never saw it"

    rec.ctx.tools.register(plain(body))
    caller.start()
    await entered.wait()
    caller.scope.cancel()
    with trio.fail_after(9):
        await caller.ended.wait()
    assert seen.is_set()
    assert caller.scope.cancelled_caught
    failure(rec.results[0], "ABORTED")
    assert len(rec.results) == 1


async def test_the_remaining_async_stages_are_skipped(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()
    rec.post("Q")
    rec.tool("echo", lambda args, exec: step.stop())
    await cancelled_while_waiting(caller, step)
    assert rec.count("post-execute:") == 0


async def test_deferred_contexts_are_kept(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()

    async def body(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        await step.stop()
        return "never"

    rec.tool("echo", body)
    await cancelled_while_waiting(caller, step)
    assert sources(rec.results[0]) == ["c1"]


async def test_a_body_that_shields_itself_is_waited_for(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()

    async def body(args: Any, exec: Any) -> str:
        with trio.CancelScope(shield=True):
            await step.stop()
        return "late"

    rec.tool("echo", body)
    caller.start()
    await step.reached.wait()
    caller.scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert not rec.results
    assert not caller.ended.is_set()
    step.go.set()
    await caller.ended.wait()
    assert len(rec.results) == 1
    assert rec.results[0].is_error


async def wait_in_pre(rec: Recorder, step: Clockwork) -> None:
    async def listener(exec: Any, next: Any) -> Any:
        await step.stop()
        return await next()

    rec.pre("A", listener)


async def wait_in_wrapper(rec: Recorder, step: Clockwork) -> None:
    async def listener(exec: Any, next: Any) -> Any:
        await step.stop()
        return await next()

    rec.around("A", listener)


async def wait_in_wrapper_after(rec: Recorder, step: Clockwork) -> None:
    async def listener(exec: Any, next: Any) -> Any:
        result = await next()
        await step.stop()
        return result

    rec.around("A", listener)


async def wait_in_post(rec: Recorder, step: Clockwork) -> None:
    async def listener(exec: Any, result: Any, next: Any) -> Any:
        await step.stop()
        return await next()

    rec.post("A", listener)


async def wait_in_approval(rec: Recorder, step: Clockwork) -> None:
    from pipeline_kit import Approval

    async def ponder(request: Any) -> str:
        await step.stop()
        return "allowed-once"

    rec.ctx.provide("approval", Approval(then=ponder))
    rec.pre("A", lambda exec, next: Ask())


BEFORE = {"pre": wait_in_pre, "approval": wait_in_approval, "wrapper": wait_in_wrapper}
AFTER = {"wrapper after": wait_in_wrapper_after, "post": wait_in_post}


@pytest.mark.parametrize("wait", [*BEFORE.values(), *AFTER.values()], ids=[*BEFORE, *AFTER])
async def test_at_every_stage_that_waits_one_result_is_observed_and_the_cancellation_goes_on(
    rec: Recorder, caller: Caller, wait: Callable[..., Any]
) -> None:
    step = Clockwork()
    await wait(rec, step)
    rec.tool()
    await cancelled_while_waiting(caller, step, agent=rec.ctx.scope().key)
    (result,) = rec.results
    assert code(result) in ("ABORTED", "ABORTED_BEFORE_DISPATCH")
    assert rec.count("finalize") == 1
    assert callbacks_of(caller.controller.signal) == 0


@pytest.mark.parametrize("wait", BEFORE.values(), ids=BEFORE)
async def test_a_call_that_is_cancelled_before_its_body_never_starts_it(
    rec: Recorder, caller: Caller, wait: Callable[..., Any]
) -> None:
    step = Clockwork()
    await wait(rec, step)
    rec.tool()
    await cancelled_while_waiting(caller, step, agent=rec.ctx.scope().key)
    assert not rec.body_ran


async def test_a_caller_that_is_cancelled_and_aborted_at_once_is_cancelled(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()
    rec.tool("echo", lambda args, exec: step.stop())
    caller.start()
    await step.reached.wait()
    caller.controller.abort()
    caller.scope.cancel()
    await caller.ended.wait()
    assert caller.scope.cancelled_caught
    failure(rec.results[0], "ABORTED")
    assert len(rec.results) == 1


async def test_cleanup_that_raises_does_not_hide_the_cancellation(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()

    async def body(args: Any, exec: Any) -> str:
        try:
            await step.stop()
        finally:
            raise RuntimeError("cleanup boom")

    rec.tool("echo", body)
    await cancelled_while_waiting(caller, step)
    failure(rec.results[0], "ABORTED")


async def test_cleanup_in_a_nursery_that_raises_does_not_hide_the_cancellation(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()

    async def messy() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("cleanup boom")

    async def body(args: Any, exec: Any) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(messy)
            await trio.testing.wait_all_tasks_blocked()
            await step.stop()
        return "never"

    rec.tool("echo", body)
    await cancelled_while_waiting(caller, step)
    failure(rec.results[0], "ABORTED")


async def test_a_body_that_swallows_the_cancellation_does_not_keep_it_from_the_caller(
    rec: Recorder, caller: Caller
) -> None:
    """The body comes to rest with a value; the caller's scope is cancelled all the same."""
    step = Clockwork()

    async def body(args: Any, exec: Any) -> str:
        try:
            await step.stop()
        except trio.Cancelled:
            return "swallowed"
        return "never"

    rec.post("Q")
    rec.tool("echo", body)
    caller.start()
    await step.reached.wait()
    caller.scope.cancel()
    await caller.ended.wait()
    assert len(rec.results) == 1
    failure(rec.results[0], "ABORTED")


@pytest.mark.parametrize("threaded", [False, True], ids=["async body", "sync body"])
@pytest.mark.parametrize("stage", ["pre", "approval", "around"])
async def test_a_listener_that_swallows_the_cancellation_starts_no_body(
    rec: Recorder, caller: Caller, stage: str, threaded: bool
) -> None:
    """Not even one that never waits; one result is observed, and the cancellation goes on."""
    step = Clockwork()
    ran: list[str] = []

    async def swallow(next: Callable[[], Any]) -> Any:
        try:
            await step.stop()
        except trio.Cancelled:
            if stage == "approval":
                return "allowed-once"
        return await next()

    def in_thread(args: Any, exec: Any) -> str:
        ran.append("thread")
        return "ran"

    async def in_loop(args: Any, exec: Any) -> str:
        ran.append("loop")
        return "ran"

    rec.tool("echo", in_thread if threaded else in_loop)
    if stage == "approval":
        rec.pre("A", lambda exec, next: Ask("sure?"))
        rec.ctx.on("approval/request", swallow)
        await cancelled_while_waiting(caller, step, agent=rec.ctx.scope().key)
    else:
        rec.ctx.on({"pre": "tools/pre-execute", "around": "tools/execute"}[stage], swallow)
        await cancelled_while_waiting(caller, step)
    assert ran == []
    (result,) = rec.results
    failure(result, "ABORTED_BEFORE_DISPATCH")


async def test_an_observer_that_raises_does_not_hide_the_cancellation(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()

    def boom(exec: Any, result: Any) -> None:
        raise RuntimeError("observer boom")

    rec.observe("clumsy", boom, prepend=True)
    rec.tool("echo", lambda args, exec: step.stop())
    caller.start()
    await step.reached.wait()
    caller.scope.cancel()
    await caller.ended.wait()
    assert caller.scope.cancelled_caught
    assert rec.count("result:R") == 1


async def test_a_nested_call_and_its_parent_each_have_their_result(rec: Recorder, caller: Caller) -> None:
    step = Clockwork()

    async def outer(args: Any, exec: Any) -> str:
        await rec.call("inner", parent=exec.token, root_call_id=exec.root_call_id, signal=exec.signal)
        return "never"

    rec.tool("echo", outer)
    rec.tool("inner", lambda args, exec: step.stop())
    await cancelled_while_waiting(caller, step)
    assert [seen.name for seen in rec.executions] == ["inner", "echo"]
    assert [code(result) for result in rec.results] == ["ABORTED", "ABORTED"]


async def test_a_deadline_of_the_callers_own_goes_on_to_it(rec: Recorder, autojump_clock: Any) -> None:
    async def body(args: Any, exec: Any) -> str:
        await trio.sleep_forever()
        return "never"

    rec.observe("R")
    rec.tool("echo", body)
    with pytest.raises(trio.TooSlowError), trio.fail_after(5):
        await rec.call()
    failure(rec.results[0], "ABORTED")


# Never swallowed


def listens(rec: Recorder, stage: str, label: str, then: Callable[..., Any]) -> None:
    """Register ``then(next)`` on a stage."""
    if stage == "tools/post-execute":

        async def post(exec: Any, result: Any, next: Any) -> Any:
            return await then(next)

        rec.post(label, post)
    else:

        async def listener(exec: Any, next: Any) -> Any:
            return await then(next)

        (rec.pre if stage == "tools/pre-execute" else rec.around)(label, listener)


STAGES = ["tools/pre-execute", "tools/execute", "tools/post-execute"]


async def fails(next: Any) -> Any:
    raise RuntimeError("boom")


@pytest.mark.parametrize("stage", STAGES)
async def test_a_failure_that_came_before_does_not_swallow_a_keyboard_interrupt(rec: Recorder, stage: str) -> None:
    async def interrupted(next: Any) -> Any:
        try:
            return await next()
        except Exception:
            raise KeyboardInterrupt from None

    rec.observe("R")
    rec.tool()
    listens(rec, stage, "A", interrupted)
    listens(rec, stage, "B", fails)
    with pytest.raises(KeyboardInterrupt):
        await rec.call()
    assert [result.is_error for result in rec.results] == [True]


@pytest.mark.parametrize("stage", STAGES)
async def test_a_failure_that_came_before_does_not_swallow_the_callers_cancellation(
    rec: Recorder, caller: Caller, stage: str
) -> None:
    step = Clockwork()

    async def waits(next: Any) -> Any:
        try:
            return await next()
        except Exception:
            return await step.stop()

    rec.tool()
    listens(rec, stage, "A", waits)
    listens(rec, stage, "B", fails)
    await cancelled_while_waiting(caller, step)
    assert [result.is_error for result in rec.results] == [True]


@pytest.mark.parametrize("stage", STAGES)
async def test_keyboard_interrupt_in_a_listener_is_not_swallowed_and_its_result_is_observed(
    rec: Recorder, stage: str
) -> None:
    def interrupted(next: Any) -> Any:
        raise KeyboardInterrupt

    rec.observe("R")
    rec.tool()
    rec.ctx.on(stage, interrupted)
    with pytest.raises(KeyboardInterrupt):
        await rec.call()
    assert [result.is_error for result in rec.results] == [True]


async def test_keyboard_interrupt_in_a_guard_is_not_swallowed_and_its_result_is_observed(rec: Recorder) -> None:
    def interrupted(exec: Any) -> None:
        raise KeyboardInterrupt

    rec.observe("R")
    rec.tool()
    rec.guard("G", interrupted)
    with pytest.raises(KeyboardInterrupt):
        await rec.call()
    assert [result.is_error for result in rec.results] == [True]
    assert not rec.body_ran


@pytest.mark.parametrize("stage", STAGES)
async def test_system_exit_in_a_listener_is_an_ordinary_failure(rec: Recorder, stage: str) -> None:
    def leave(next: Any) -> Any:
        raise SystemExit(2)

    rec.observe("R")
    rec.tool()
    rec.ctx.on(stage, leave)
    result = await rec.call()
    assert result.is_error
    assert rec.results == [result]
