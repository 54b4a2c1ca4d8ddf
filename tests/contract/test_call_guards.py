"""Contract 5.5 and 6.3: guards, which can only take permission away."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import Approval, Plugin, Recorder, failure, plugin, raising, success

from dsh_runtime import Allow, Ask, Deny


async def test_a_guards_reason_denies_the_call(rec: Recorder) -> None:
    rec.tool()
    rec.guard("G", "the moon is wrong")
    result = failure(await rec.call(), "GUARDED")
    assert "the moon is wrong" in result.error.message
    assert not rec.body_ran


async def test_a_guard_without_a_reason_leaves_the_call(rec: Recorder) -> None:
    rec.tool()
    rec.guard("G", None)
    success(await rec.call())


async def test_an_empty_reason_denies_with_a_default_one(rec: Recorder) -> None:
    rec.tool()
    rec.guard("G", "")
    assert failure(await rec.call(), "GUARDED").error.message.strip()
    assert not rec.body_ran


@pytest.mark.parametrize("answer", [False, True, 0, Allow(), Deny("no"), [], ["reason"], b"reason"], ids=repr)
async def test_any_other_answer_fails_the_call_closed(rec: Recorder, answer: Any) -> None:
    rec.passers()
    rec.tool()
    rec.guard("G", answer)
    failure(await rec.call(), "LISTENER_FAILED")
    assert not rec.body_ran
    assert rec.count("post-execute:") == 0


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_an_awaitable_is_no_answer_of_a_guard(rec: Recorder) -> None:
    async def later() -> None:
        return None

    rec.tool()
    rec.guard("G", lambda exec: later())
    failure(await rec.call(), "LISTENER_FAILED")
    assert not rec.body_ran


async def test_a_guard_that_raises_fails_the_call_closed(rec: Recorder) -> None:
    rec.passers()
    rec.tool()
    rec.guard("G", raising(RuntimeError("boom")))
    failure(await rec.call(), "LISTENER_FAILED")
    assert rec.stages[-2:] == ["finalize(isError=true,code=LISTENER_FAILED)", "result:R"]
    assert rec.count("post-execute:") == 0


async def test_a_guards_denial_is_seen_by_post_listeners(rec: Recorder) -> None:
    rec.passers()
    rec.tool()
    rec.guard("G", "no")
    await rec.call()
    assert rec.stages == [
        "pre-execute:P",
        "guard:G",
        "post-execute:Q",
        "finalize(isError=true,code=GUARDED)",
        "result:R",
    ]


async def test_no_listener_can_allow_what_a_guard_denies(rec: Recorder) -> None:
    async def insist(exec: Any, next: Any) -> Any:
        await next()
        return Allow()

    rec.tool()
    rec.guard("G", "no")
    rec.pre("A", insist, prepend=True)
    failure(await rec.call(), "GUARDED")


async def test_guards_run_from_the_host_through_the_scopes_from_the_root_down(rec: Recorder) -> None:
    grand = rec.ctx.scope()
    parent = rec.ctx.scope(parent=grand.key)
    child = rec.ctx.scope(parent=parent.key)
    rec.guard("child", ctx=child.ctx)
    rec.guard("parent", ctx=parent.ctx)
    rec.guard("host-1")
    rec.guard("grand", ctx=grand.ctx)
    rec.guard("host-2")
    rec.tool()
    success(await rec.call(agent=child.key))
    assert [stage for stage in rec.stages if stage.startswith("guard")] == [
        "guard:host-1",
        "guard:host-2",
        "guard:grand",
        "guard:parent",
        "guard:child",
    ]


async def test_a_childs_guard_does_not_bind_its_parent(rec: Recorder) -> None:
    parent = rec.ctx.scope()
    rec.guard("child", "no", ctx=rec.ctx.scope(parent=parent.key).ctx)
    rec.tool()
    success(await rec.call(agent=parent.key))


async def test_guards_run_after_the_listeners_and_after_a_persons_yes(rec: Recorder) -> None:
    rec.ctx.provide("approval", Approval(then=lambda request: rec.log("approval") or "allowed-once"))
    rec.guard("G", "no")
    rec.pre("A", lambda exec, next: Ask())
    rec.tool()
    failure(await rec.call(agent=rec.ctx.scope().key), "GUARDED")
    assert rec.stages[:3] == ["pre-execute:A", "approval", "guard:G"]


async def test_a_guard_that_comes_while_a_person_is_asked_counts(rec: Recorder) -> None:
    def answer(request: Any) -> str:
        rec.guard("late", "no")
        return "allowed-once"

    rec.ctx.provide("approval", Approval(then=answer))
    rec.pre("A", lambda exec, next: Ask())
    rec.tool()
    failure(await rec.call(agent=rec.ctx.scope().key), "GUARDED")
    assert not rec.body_ran


async def test_a_guard_sees_the_frozen_execution(rec: Recorder) -> None:
    seen: list[Any] = []

    def look(exec: Any) -> None:
        with pytest.raises((AttributeError, TypeError)):
            exec.name = "other"
        with pytest.raises(TypeError):
            exec.arguments["x"] = 2
        seen.append((exec.name, exec.arguments))

    rec.tool()
    rec.guard("G", look)
    success(await rec.call(arguments={"x": 1}))
    assert seen == [("echo", {"x": 1})]


async def test_a_guards_denial_is_put_down_to_its_plugin(host: Any) -> None:
    rec = Recorder(host.ctx)
    rec.tool()
    await host.ctx.plugin(Plugin("warden", lambda ctx: ctx.tools.guard(lambda exec: "no"))).wait()
    assert plugin(await rec.call()) == "warden"


async def test_a_guard_goes_with_its_plugin(host: Any) -> None:
    rec = Recorder(host.ctx)
    rec.tool()
    fiber = host.ctx.plugin(Plugin("warden", lambda ctx: ctx.tools.guard(lambda exec: "no")))
    await fiber.wait()
    failure(await rec.call(), "GUARDED")
    await fiber.dispose()
    success(await rec.call())


async def test_undoing_a_guard_twice_leaves_the_others(rec: Recorder) -> None:
    undo = rec.guard("G", "no")
    rec.guard("H", "no")
    rec.tool()
    undo()
    undo()
    failure(await rec.call(), "GUARDED")
    assert (rec.count("guard:G"), rec.count("guard:H")) == (0, 1)
