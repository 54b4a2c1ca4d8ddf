"""Contract 3: how a waterfall runs - order, next, sync and async listeners, the policy deadline."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from pipeline_kit import (
    Approval,
    Clockwork,
    Plugin,
    Recorder,
    failure,
    plugin,
    policy_timeout,
    success,
    text,
)

from dsh_runtime import (
    Accept,
    Allow,
    Ask,
    Deny,
    ToolExecutionSuccess,
    hookimpl,
    open_host,
)

Next = Callable[[], Awaitable[Any]]


async def test_a_plain_return_of_next_works_from_a_sync_listener(rec: Recorder) -> None:
    rec.tool()
    rec.ctx.on("tools/pre-execute", lambda exec, next: next())
    rec.ctx.on("tools/execute", lambda exec, next: next())
    rec.ctx.on("tools/post-execute", lambda exec, result, next: next())
    assert success(await rec.call()).value == "ran:echo"


async def test_a_plain_return_of_next_works_from_an_async_listener(rec: Recorder) -> None:
    async def pass_on(exec: Any, next: Next) -> Any:
        return next()

    async def pass_post_on(exec: Any, result: Any, next: Next) -> Any:
        return next()

    rec.tool()
    rec.ctx.on("tools/pre-execute", pass_on)
    rec.ctx.on("tools/execute", pass_on)
    rec.ctx.on("tools/post-execute", pass_post_on)
    assert success(await rec.call()).value == "ran:echo"


async def test_what_a_plain_return_of_next_hears_is_a_denial(rec: Recorder) -> None:
    async def pass_on(exec: Any, next: Next) -> Any:
        return next()

    rec.tool()
    rec.ctx.on("tools/pre-execute", pass_on)
    rec.pre("B", lambda exec, next: Deny("no"))
    failure(await rec.call(), "DENIED")


async def test_a_listener_may_take_fewer_arguments_than_the_event_has(rec: Recorder) -> None:
    rec.tool()
    rec.ctx.on("tools/pre-execute", lambda: Allow())
    rec.ctx.on("tools/post-execute", lambda result: Accept(content=text(result.value.upper())))
    rec.ctx.on("tools/execute", lambda next: next())
    assert (await rec.call()).content == text("RAN:ECHO")


async def test_next_called_again_runs_wrappers_and_body_again(rec: Recorder) -> None:
    async def thrice(exec: Any, next: Next) -> Any:
        await next()
        await next()
        return await next()

    rec.tool()
    rec.around("A", thrice)
    rec.around("B")
    await rec.call()
    assert (rec.count("execute:B"), rec.count("body:")) == (3, 3)


async def test_next_called_again_runs_post_listeners_again(rec: Recorder) -> None:
    async def twice(exec: Any, result: Any, next: Next) -> Any:
        await next()
        return await next()

    rec.tool()
    rec.post("A", twice)
    rec.post("B")
    await rec.call()
    assert rec.count("post-execute:B") == 2


async def test_the_answer_heard_last_is_the_one_passed_on(rec: Recorder) -> None:
    async def twice(exec: Any, next: Next) -> Any:
        await next()
        return await next()

    rec.tool()
    rec.pre("A", twice)
    rec.pre("B", lambda exec, next: Allow() if rec.count("pre-execute:B") == 1 else Deny("no"))
    failure(await rec.call(), "DENIED")


@pytest.mark.parametrize("stage", ["tools/pre-execute", "tools/execute", "tools/post-execute"])
async def test_a_next_that_is_kept_raises_afterwards(rec: Recorder, stage: str) -> None:
    kept: list[Next] = []

    async def keep(next: Next) -> Any:
        kept.append(next)
        return await next()

    rec.tool()
    rec.ctx.on(stage, keep)
    await rec.call()
    bodies = rec.count("body:")
    with pytest.raises(Exception, match="next"):
        await kept[0]()
    assert rec.count("body:") == bodies


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    ("stage", "answer"),
    [
        ("tools/pre-execute", Allow()),
        ("tools/execute", ToolExecutionSuccess(value="own", content=[])),
        ("tools/post-execute", Accept()),
    ],
)
async def test_a_next_that_was_called_but_never_heard_raises_afterwards(
    rec: Recorder, stage: str, answer: Any, alone: bool
) -> None:
    kept: list[Awaitable[Any]] = []
    heard: list[int] = []

    def keep(next: Next) -> Any:
        kept.append(next())
        return answer

    def behind(next: Next) -> Any:
        heard.append(1)
        return next()

    rec.tool()
    rec.ctx.on(stage, keep)
    if not alone:
        rec.ctx.on(stage, behind)
    success(await rec.call())
    before = (len(heard), rec.count("body:"))
    with pytest.raises(Exception, match="next"):
        await kept[0]
    assert (len(heard), rec.count("body:")) == before


async def test_a_next_in_a_background_task_keeps_the_call_until_its_body_has_rested(
    rec: Recorder, nursery: trio.Nursery
) -> None:
    step = Clockwork()
    results: list[Any] = []

    async def body(args: Any, exec: Any) -> str:
        await step.stop()
        return "slow"

    async def hear(next: Next) -> None:
        await next()

    async def hand_over(exec: Any, next: Next) -> Any:
        nursery.start_soon(hear, next)
        await step.reached.wait()
        return ToolExecutionSuccess(value="own", content=[])

    async def call() -> None:
        results.append(await rec.call())

    rec.tool("echo", body)
    rec.around("A", hand_over)
    rec.observe("R")
    nursery.start_soon(call)
    await step.reached.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert not results
    assert not rec.results
    step.go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert [result.value for result in results] == ["own"]


async def test_a_body_in_a_background_task_hears_that_its_caller_is_cancelled(
    rec: Recorder, nursery: trio.Nursery
) -> None:
    """It is another task that is cancelled, so the signal has to say so; then the call has come to rest."""
    reached = trio.Event()
    ended: list[str] = []

    async def body(args: Any, exec: Any) -> str:
        reached.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.append(type(exec.signal.reason).__name__)

    async def hear(next: Next) -> None:
        await next()

    async def hand_over(exec: Any, next: Next) -> Any:
        nursery.start_soon(hear, next)
        await trio.sleep_forever()

    rec.tool("echo", body)
    rec.around("A", hand_over)
    rec.observe("R")
    async with trio.open_nursery() as callers:
        callers.start_soon(rec.call)
        await reached.wait()
        callers.cancel_scope.cancel()
    assert ended == ["CallerCancelled"]
    failure(rec.results[0], "ABORTED")


async def test_a_next_in_a_background_task_keeps_the_policy_stage_open(rec: Recorder, nursery: trio.Nursery) -> None:
    step = Clockwork()

    async def hear(next: Next) -> None:
        await next()

    async def hand_over(exec: Any, next: Next) -> Any:
        nursery.start_soon(hear, next)
        await step.reached.wait()
        return Allow()

    async def behind(exec: Any, next: Next) -> Any:
        if rec.count("pre-execute:B") == 1:
            await step.stop()
        return Allow()

    async def call() -> None:
        await rec.call()

    rec.tool()
    rec.pre("A", hand_over)
    rec.pre("B", behind)
    nursery.start_soon(call)
    await step.reached.wait()
    await trio.testing.wait_all_tasks_blocked()
    assert not rec.body_ran
    step.go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert rec.body_ran


# Order


async def test_the_first_registered_is_the_outermost(rec: Recorder) -> None:
    rec.tool(finalized=False)
    for label in ("A", "B"):
        rec.pre(label)
        rec.around(label)
        rec.post(label)
    await rec.call()
    assert [stage for stage in rec.stages if stage.endswith((":A", ":B"))] == [
        "pre-execute:A",
        "pre-execute:B",
        "execute:A",
        "execute:B",
        "post-execute:A",
        "post-execute:B",
    ]


async def test_prepended_listeners_stand_in_front_in_their_own_order(rec: Recorder) -> None:
    rec.tool()
    rec.pre("ordinary")
    rec.pre("first", prepend=True)
    rec.pre("second", prepend=True)
    await rec.call()
    assert [stage for stage in rec.stages if stage.startswith("pre")] == [
        "pre-execute:first",
        "pre-execute:second",
        "pre-execute:ordinary",
    ]


async def test_listeners_stand_in_the_order_of_their_plugins_whenever_they_register(host: Any) -> None:
    rec = Recorder(host.ctx)
    contexts: dict[str, Any] = {}
    for name in ("one", "two"):
        await host.ctx.plugin(Plugin(name, lambda ctx, name=name: contexts.update({name: ctx}))).wait()
    rec.pre("two", ctx=contexts["two"])
    rec.pre("one", ctx=contexts["one"])
    rec.tool()
    await rec.call()
    assert rec.stages[:2] == ["pre-execute:one", "pre-execute:two"]


async def test_hookimpl_functions_listen_like_registered_ones_with_their_bands(host: Any) -> None:
    heard: list[str] = []

    class Late:
        name = "late"

        @hookimpl(trylast=True)
        async def tools_pre_execute(self, exec: Any, next: Next) -> Any:
            heard.append("late")
            return await next()

    class Early:
        name = "early"

        @hookimpl(tryfirst=True)
        def tools_pre_execute(self, next: Next) -> Any:
            heard.append("early")
            return next()

    rec = Recorder(host.ctx)
    rec.tool()
    await host.ctx.plugin(Late()).wait()
    rec.pre("middle", lambda exec, next: heard.append("middle") or next())
    await host.ctx.plugin(Early()).wait()
    success(await rec.call())
    assert heard == ["early", "middle", "late"]


async def test_a_call_runs_the_lists_of_all_its_stages_as_they_were_when_it_entered(rec: Recorder) -> None:
    undo: list[Any] = []

    def change(exec: Any, next: Next) -> Any:
        for gone in undo:
            gone()
        rec.around("late")
        rec.post("late")
        rec.observe("late")
        return next()

    rec.tool(finalized=False)
    rec.pre("A", change)
    undo += [rec.around("X"), rec.post("Q"), rec.observe("R")]
    await rec.call()
    assert rec.stages == ["pre-execute:A", "execute:X", "body:echo", "render", "post-execute:Q", "result:R"]


# The deadline of policy


class Sleepy(Plugin):
    """A plugin whose listener of one event takes its time."""

    def __init__(self, event: str, seconds: float, name: str = "sleepy") -> None:
        async def slow_policy(next: Next) -> Any:
            await trio.sleep(seconds)
            return await next()

        super().__init__(name, lambda ctx: ctx.on(event, slow_policy))


@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/post-execute"])
async def test_policy_that_takes_too_long_fails_the_call_and_is_named(event: str, autojump_clock: Any) -> None:
    async with open_host(policy_timeout(5), plugins=[Sleepy(event, 6)]) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        result = await rec.call()
        assert plugin(failure(result, "LISTENER_FAILED")) == "sleepy"
        assert "slow_policy" in result.error.message
        assert rec.body_ran is (event == "tools/post-execute")


async def test_policy_that_takes_less_than_its_time_is_let_be(autojump_clock: Any) -> None:
    plugins = [Sleepy("tools/pre-execute", 4), Sleepy("tools/post-execute", 4, "other")]
    async with open_host(policy_timeout(5), plugins=plugins) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        success(await rec.call())


async def test_the_listeners_of_a_stage_have_the_time_together(autojump_clock: Any) -> None:
    plugins = [Sleepy("tools/pre-execute", 3, "one"), Sleepy("tools/pre-execute", 3, "two")]
    async with open_host(policy_timeout(5), plugins=plugins) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        assert plugin(failure(await rec.call(), "LISTENER_FAILED")) == "two"


async def test_the_listener_that_was_running_is_named_not_the_one_that_waits_for_it(autojump_clock: Any) -> None:
    async with open_host(policy_timeout(5), plugins=[Sleepy("tools/pre-execute", 6)]) as host:
        rec = Recorder(host.ctx)
        rec.tool()

        async def waits(exec: Any, next: Next) -> Any:
            return await next()

        rec.pre("A", waits, prepend=True)
        assert plugin(failure(await rec.call(), "LISTENER_FAILED")) == "sleepy"


async def test_a_listener_in_front_cannot_catch_the_deadline(autojump_clock: Any) -> None:
    async with open_host(policy_timeout(5), plugins=[Sleepy("tools/pre-execute", 6)]) as host:
        rec = Recorder(host.ctx)
        rec.tool()

        async def soften(exec: Any, next: Next) -> Any:
            try:
                return await next()
            finally:
                return Allow()  # noqa: B012, SIM107

        rec.pre("A", soften, prepend=True)
        failure(await rec.call(), "LISTENER_FAILED")
        assert not rec.body_ran


def letting_go(event: str, nursery: trio.Nursery) -> list[Plugin]:
    """A plugin that hands its ``next()`` to a task of somebody else's, and one behind it that never answers there."""
    first = [True]

    async def hear(next: Next) -> None:
        await next()

    async def lets_go(next: Next) -> Any:
        nursery.start_soon(hear, next)
        await trio.sleep(1)
        return await next()

    async def hangs(next: Next) -> Any:
        if first:
            first.clear()
            await trio.sleep_forever()
        return await next()

    return [
        Plugin("careless", lambda ctx: ctx.on(event, lets_go)),
        Plugin("stuck", lambda ctx: ctx.on(event, hangs)),
    ]


@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/post-execute"])
async def test_a_next_that_is_handed_to_another_task_outlasts_the_policy_deadline_by_little(
    event: str, autojump_clock: Any, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    """The call fails, and the plugin that has let go of it is named; a few seconds are left to come to rest."""
    async with open_host(policy_timeout(5), plugins=letting_go(event, nursery)) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        rec.observe("R")
        start = trio.current_time()
        result = await rec.call()
        assert plugin(failure(result, "LISTENER_FAILED")) == "careless"
        assert "lets_go" in result.error.message
        assert "another task" in result.error.message
        assert trio.current_time() - start == pytest.approx(10)
        assert rec.body_ran is (event == "tools/post-execute")
        assert len(rec.results) == 1
        assert "'careless'" in caplog.text
    nursery.cancel_scope.cancel()


async def test_a_next_that_is_handed_to_another_task_may_come_to_rest_after_the_deadline(
    autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """Then it is the deadline that failed the call."""
    late = Sleepy("tools/pre-execute", 8, "late")
    async with open_host(policy_timeout(5), plugins=[letting_go("tools/pre-execute", nursery)[0], late]) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        assert plugin(failure(await rec.call(), "LISTENER_FAILED")) == "late"
        assert trio.current_time() == pytest.approx(8)
        assert not rec.body_ran


@pytest.mark.parametrize("event", ["tools/pre-execute", "tools/post-execute"])
async def test_a_next_in_another_task_does_not_hold_a_cancelled_caller(
    event: str, autojump_clock: Any, nursery: trio.Nursery
) -> None:
    """Not without a policy deadline either; the one result is observed all the same."""
    async with open_host(plugins=letting_go(event, nursery)) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        rec.observe("R")
        with trio.move_on_after(3) as scope:
            await rec.call()
        assert scope.cancelled_caught
        assert trio.current_time() == pytest.approx(8)
        assert rec.results[0].error.info.code.startswith("ABORTED")
        assert len(rec.results) == 1
    nursery.cancel_scope.cancel()


async def test_wrappers_and_bodies_have_no_policy_deadline(autojump_clock: Any) -> None:
    async with open_host(policy_timeout(5), plugins=[Sleepy("tools/execute", 60)]) as host:
        rec = Recorder(host.ctx)

        async def body(args: Any, exec: Any) -> str:
            await trio.sleep(60)
            return "done"

        rec.tool("echo", body)
        assert success(await rec.call()).value == "done"


async def test_the_time_that_a_person_takes_is_not_policys(autojump_clock: Any) -> None:
    async def ponder(request: Any) -> str:
        await trio.sleep(3600)
        return "allowed-once"

    async with open_host(policy_timeout(5)) as host:
        rec = Recorder(host.ctx)
        rec.ctx.provide("approval", Approval(then=ponder))
        rec.pre("A", lambda exec, next: Ask("why"))
        rec.tool()
        success(await rec.call(agent=rec.ctx.scope().key))


async def test_a_bare_host_has_no_policy_deadline(autojump_clock: Any) -> None:
    async with open_host(plugins=[Sleepy("tools/pre-execute", 1e6)]) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        success(await rec.call())
