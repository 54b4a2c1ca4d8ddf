"""Contract 6, cancellation by the caller's signal, at every stage."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import threading
from typing import Any

import pytest
import trio
import trio.testing
from pipeline_kit import (
    Clockwork,
    Recorder,
    callbacks_of,
    failure,
    plain,
    raising,
    success,
    text,
)

from dsh_runtime import AbortController, AbortSignal, Accept, Block, HarnessError, open_host


@pytest.fixture
def caller() -> AbortController:
    return AbortController()


class Background:
    """A call that runs beside the test."""

    def __init__(self, nursery: trio.Nursery, rec: Recorder, caller: AbortController) -> None:
        self.results: list[Any] = []
        self._rec = rec
        self._caller = caller
        nursery.start_soon(self._run)

    async def _run(self) -> None:
        self.results.append(await self._rec.call(signal=self._caller.signal))


async def sleeping(args: Any, exec: Any) -> str:
    await trio.sleep_forever()
    return "never"


# Before the body


async def test_before_entry(rec: Recorder, caller: AbortController) -> None:
    rec.passers()
    rec.guard("G")
    rec.tool()
    caller.abort()
    failure(await rec.call(signal=caller.signal), "ABORTED_BEFORE_DISPATCH")
    assert rec.stages == ["finalize(isError=true,code=ABORTED_BEFORE_DISPATCH)", "result:R"]


async def test_arguments_that_are_no_json_come_before_an_abort(rec: Recorder, caller: AbortController) -> None:
    rec.tool()
    caller.abort()
    failure(await rec.call(arguments={"x": object()}, signal=caller.signal), "INVALID_ARGS")


async def test_in_a_pre_listener(rec: Recorder, caller: AbortController) -> None:
    rec.passers()
    rec.pre("A", lambda exec, next: caller.abort() and next())
    rec.guard("G")
    rec.tool()
    failure(await rec.call(signal=caller.signal), "ABORTED_BEFORE_DISPATCH")
    assert not rec.body_ran
    assert (rec.count("execute:"), rec.count("guard:G"), rec.count("post-execute:Q")) == (0, 1, 1)


async def test_in_a_guard(rec: Recorder, caller: AbortController) -> None:
    rec.guard("G", lambda exec: caller.abort() and None)
    rec.tool()
    failure(await rec.call(signal=caller.signal), "ABORTED_BEFORE_DISPATCH")
    assert not rec.body_ran


async def test_in_a_pre_listener_that_fails(rec: Recorder, caller: AbortController) -> None:
    """Policy that failed is reported, whoever aborted."""
    rec.pre("A", lambda exec, next: caller.abort() and None)
    rec.tool()
    failure(await rec.call(signal=caller.signal), "LISTENER_FAILED")


async def test_in_a_wrapper_before_the_body(rec: Recorder, caller: AbortController) -> None:
    seen: list[Any] = []

    async def abort(exec: Any, next: Any) -> Any:
        caller.abort()
        seen.append(await next())
        return seen[-1]

    rec.around("A", abort)
    rec.tool()
    failure(await rec.call(signal=caller.signal), "ABORTED_BEFORE_DISPATCH")
    failure(seen[0], "ABORTED_BEFORE_DISPATCH")
    assert not rec.body_ran


async def test_while_waiting_for_a_thread(caller: AbortController) -> None:
    """All threads are busy, so the body has not begun."""
    release = threading.Event()
    ran: list[str] = []
    results: list[Any] = []

    def body(args: Any, exec: Any) -> str:
        ran.append(exec.call_id)
        assert release.wait(10)
        return "ok"

    async with open_host({"host": {"threads": 1}}) as host:
        rec = Recorder(host.ctx)
        rec.ctx.tools.register(plain(body))

        async def call(signal: AbortSignal | None, call_id: str) -> None:
            results.append(await rec.call(signal=signal, call_id=call_id))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, None, "first")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(call, caller.signal, "second")
            await trio.testing.wait_all_tasks_blocked()
            caller.abort()
            await trio.testing.wait_all_tasks_blocked()
            release.set()
    assert ran == ["first"]
    failure(results[0], "ABORTED_BEFORE_DISPATCH")
    success(results[1])


# During the body


async def test_an_async_body_stops_at_its_next_checkpoint(
    rec: Recorder, caller: AbortController, nursery: trio.Nursery
) -> None:
    rec.tool("echo", sleeping)
    call = Background(nursery, rec, caller)
    await trio.testing.wait_all_tasks_blocked()
    assert not call.results
    caller.abort()
    await trio.testing.wait_all_tasks_blocked()
    failure(call.results[0], "ABORTED")


async def test_a_threaded_body_sees_the_abort_and_is_waited_for(
    rec: Recorder, caller: AbortController, nursery: trio.Nursery
) -> None:
    entered, aborted, rest = trio.Event(), trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def body(args: Any, exec: Any) -> str:
        seen = threading.Event()
        exec.signal.add_callback(seen.set)
        token.run_sync_soon(entered.set)
        assert seen.wait(10)
        assert exec.signal.aborted
        token.run_sync_soon(aborted.set)
        assert rest.wait(10)
        rec.log("rested")
        return "late"

    rec.observe("R")
    rec.ctx.tools.register(plain(body))
    call = Background(nursery, rec, caller)
    await entered.wait()
    caller.abort()
    await aborted.wait()
    assert not rec.results
    rest.set()
    await nursery_rest(call)
    failure(call.results[0], "ABORTED")
    assert rec.stages == ["rested", "result:R"]


async def nursery_rest(call: Background) -> None:
    """Wait until the call has come back from its thread."""
    with trio.fail_after(10):
        while not call.results:
            await trio.lowlevel.checkpoint()


async def test_a_body_that_shields_itself_is_waited_for(
    rec: Recorder, caller: AbortController, nursery: trio.Nursery
) -> None:
    step = Clockwork()

    async def body(args: Any, exec: Any) -> str:
        with trio.CancelScope(shield=True):
            await step.stop()
        return "late"

    rec.tool("echo", body)
    call = Background(nursery, rec, caller)
    await step.reached.wait()
    caller.abort()
    await trio.testing.wait_all_tasks_blocked()
    assert not call.results
    step.go.set()
    await trio.testing.wait_all_tasks_blocked()
    failure(call.results[0], "ABORTED")


async def test_an_abort_from_another_thread_stops_an_async_body(rec: Recorder, caller: AbortController) -> None:
    async def body(args: Any, exec: Any) -> str:
        threading.Thread(target=caller.abort).start()
        await trio.sleep_forever()
        return "never"

    rec.tool("echo", body)
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_the_body_can_read_the_reason(rec: Recorder, caller: AbortController) -> None:
    reasons: list[Any] = []
    reason = ValueError("enough")

    async def body(args: Any, exec: Any) -> str:
        try:
            await trio.sleep_forever()
        finally:
            reasons.append(exec.signal.reason)
        return "never"

    rec.tool("echo", body)
    async with trio.open_nursery() as nursery:
        Background(nursery, rec, caller)
        await trio.testing.wait_all_tasks_blocked()
        caller.abort(reason)
    assert reasons == [reason]


async def test_a_success_after_an_abort_is_aborted(rec: Recorder, caller: AbortController) -> None:
    rec.tool("echo", lambda args, exec: caller.abort() and "ignored")
    assert "ignored" not in str(failure(await rec.call(signal=caller.signal), "ABORTED"))


async def test_a_failure_without_a_code_after_an_abort_is_aborted(rec: Recorder, caller: AbortController) -> None:
    rec.tool("echo", lambda args, exec: caller.abort() and raising(ValueError("boom"))())
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_a_failure_with_a_code_after_an_abort_stays(rec: Recorder, caller: AbortController) -> None:
    rec.tool("echo", lambda args, exec: caller.abort() and raising(HarnessError("boom", code="BOOM"))())
    failure(await rec.call(signal=caller.signal), "BOOM")


async def test_a_body_that_raises_its_signals_reason_is_aborted(rec: Recorder, caller: AbortController) -> None:
    rec.tool("echo", lambda args, exec: caller.abort() and exec.signal.throw_if_aborted())
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_a_reason_that_carries_a_code_ends_a_body_as_aborted(rec: Recorder, caller: AbortController) -> None:
    """A body that ended because of the signal, whatever the signal's reason is made of."""

    async def body(args: Any, exec: Any) -> str:
        caller.abort(HarnessError("reason", code="REASON"))
        await trio.sleep_forever()
        return "never"

    rec.tool("echo", body)
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_cleanup_that_raises_does_not_hide_the_abort(rec: Recorder, caller: AbortController) -> None:
    async def body(args: Any, exec: Any) -> str:
        try:
            caller.abort()
            await trio.sleep_forever()
        finally:
            raise RuntimeError("cleanup boom")

    rec.tool("echo", body)
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_cleanup_in_a_nursery_that_raises_does_not_hide_the_abort(rec: Recorder, caller: AbortController) -> None:
    async def messy() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise RuntimeError("cleanup boom")

    async def body(args: Any, exec: Any) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(messy)
            nursery.start_soon(trio.sleep_forever)
            await trio.testing.wait_all_tasks_blocked()
            caller.abort()
        return "never"

    rec.tool("echo", body)
    failure(await rec.call(signal=caller.signal), "ABORTED")


# After the body


async def test_while_rendering(rec: Recorder, caller: AbortController) -> None:
    rec.tool(render=lambda args, value: caller.abort() and text("late"))
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_in_a_wrapper_after_the_body(rec: Recorder, caller: AbortController) -> None:
    async def abort(exec: Any, next: Any) -> Any:
        result = await next()
        caller.abort()
        return result

    rec.around("A", abort)
    rec.tool()
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_in_a_post_listener(rec: Recorder, caller: AbortController) -> None:
    rec.post("A", lambda exec, result, next: caller.abort() and Accept(value="new"))
    rec.tool()
    failure(await rec.call(signal=caller.signal), "ABORTED")


async def test_in_a_post_listener_that_blocks(rec: Recorder, caller: AbortController) -> None:
    rec.post("A", lambda exec, result, next: caller.abort() and Block("no"))
    rec.tool()
    failure(await rec.call(signal=caller.signal), "BLOCKED")


async def test_post_listeners_see_the_aborted_result(rec: Recorder, caller: AbortController) -> None:
    seen: list[Any] = []
    rec.post("A", lambda exec, result, next: seen.append(result) or next())
    rec.tool("echo", lambda args, exec: caller.abort() and "ignored")
    await rec.call(signal=caller.signal)
    failure(seen[0], "ABORTED")


async def test_after_the_call_nothing_changes(rec: Recorder, caller: AbortController) -> None:
    rec.tool()
    result = await rec.call(signal=caller.signal)
    caller.abort()
    assert success(result).value == "ran:echo"


# What a signal keeps


@pytest.mark.parametrize("kind", ["plain", "any", "timeout"])
async def test_a_long_lived_signal_keeps_no_trace_of_the_calls_that_used_it(rec: Recorder, kind: str) -> None:
    caller = AbortController()
    session = {
        "plain": lambda: caller.signal,
        "any": lambda: AbortSignal.any([caller.signal, AbortController().signal]),
        "timeout": lambda: AbortSignal.timeout(3600),
    }[kind]()

    async def body(args: Any, exec: Any) -> str:
        await trio.lowlevel.checkpoint()
        return "ok"

    async def replace(exec: Any, next: Any) -> Any:
        exec.signal = AbortSignal.any([exec.signal, AbortController().signal])
        return await next()

    rec.around("A", replace)
    rec.tool("echo", body)
    rec.ctx.tools.register(plain(lambda args, exec: "ok", name="threaded"))
    for name in ("echo", "threaded"):
        success(await rec.call(name, signal=session))
    assert (callbacks_of(session), callbacks_of(caller.signal)) == (0, 0)


async def test_a_deadline_signal_stops_a_body(rec: Recorder, autojump_clock: Any) -> None:
    rec.tool("echo", sleeping)
    started = trio.current_time()
    failure(await rec.call(signal=AbortSignal.timeout(5)), "ABORTED")
    assert trio.current_time() - started == pytest.approx(5)


async def test_a_deadline_of_a_wrapper_stops_a_body(rec: Recorder, autojump_clock: Any) -> None:
    async def deadline(exec: Any, next: Any) -> Any:
        exec.signal = AbortSignal.any([exec.signal, AbortSignal.timeout(5)])
        return await next()

    rec.around("A", deadline)
    rec.tool("echo", sleeping)
    failure(await rec.call(), "ABORTED")
