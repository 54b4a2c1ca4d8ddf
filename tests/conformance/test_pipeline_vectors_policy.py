"""Conformance of what may stop a call before its body: pre-execute listeners, people, guards."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import Approval, Recorder, code, failure, raising
from pipeline_vectors import Vector, vectors

from dsh_runtime import AbortController, Allow, Ask, Deny


def agent_with(rec: Recorder, approval: Approval) -> Any:
    """Provide the approval service and make an agent."""
    rec.ctx.provide("approval", approval)
    return rec.ctx.scope().key


def logged(rec: Recorder, outcome: str) -> Approval:
    """An approval service whose answering stands among the stages."""

    def answer(request: Any) -> str:
        rec.log("approval")
        return outcome

    return Approval(then=answer)


# Decisions


NOTHING: Any = None


@pytest.mark.parametrize("decision", [Deny(NOTHING), {"kind": "maybe"}], ids=["deny-without-reason", "unknown-kind"])
async def test_a_decision_that_is_none_fails_closed(rec: Recorder, decision: Any) -> None:
    """In place of pl-034-pre and pl-035-pre."""
    rec.passers()
    rec.pre("D", lambda exec, next: decision)
    rec.tool()
    failure(await rec.call(), "LISTENER_FAILED")
    assert rec.stages == [
        "pre-execute:P",
        "pre-execute:D",
        "finalize(isError=true,code=LISTENER_FAILED)",
        "result:R",
    ]


@vectors("pl-036-pre")
async def test_a_listener_that_returns_nothing_fails_the_call(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.pre("U", lambda exec, next: None)
    rec.tool()
    vector.check(rec, await rec.call(), code="LISTENER_FAILED")


@vectors("pl-037-pre")
async def test_a_listener_that_heard_a_denial_may_allow(rec: Recorder, vector: Vector) -> None:
    async def override(exec: Any, next: Any) -> Any:
        await next()
        return Allow()

    rec.pre("A", override)
    rec.pre("B", lambda exec, next: Deny("no"))
    rec.tool()
    vector.check(rec, await rec.call())


async def test_an_early_allow_does_not_skip_the_denial_behind_it(rec: Recorder) -> None:
    """In place of pl-038-pre."""
    rec.pre("A", lambda exec, next: Allow())
    rec.pre("B", lambda exec, next: Deny("no"))
    rec.tool(finalized=False)
    failure(await rec.call(), "DENIED")
    assert rec.stages == ["pre-execute:A", "pre-execute:B"]


async def test_next_called_again_runs_every_listener_behind_again(rec: Recorder) -> None:
    """In place of pl-039-pre."""

    async def twice(exec: Any, next: Any) -> Any:
        await next()
        rec.log("A-second")
        return await next()

    rec.pre("A", twice)
    rec.pre("B")
    rec.pre("C")
    rec.tool(finalized=False)
    await rec.call()
    assert rec.stages[:6] == [
        "pre-execute:A",
        "pre-execute:B",
        "pre-execute:C",
        "A-second",
        "pre-execute:B",
        "pre-execute:C",
    ]
    assert rec.stages[6:] == ["body:echo", "render"]


@vectors("pl-041-pre-throw", "pl-042-pre-throw", "pl-046-pre-throw")
async def test_a_listener_that_raises_fails_the_call(rec: Recorder, vector: Vector) -> None:
    def raise_in_sync(exec: Any, next: Any) -> Any:
        raise RuntimeError("boom")

    async def raise_in_async(exec: Any, next: Any) -> Any:
        raise RuntimeError("boom")

    def raise_nothing(exec: Any, next: Any) -> Any:
        raise None  # type: ignore[misc]  # noqa: B016

    ways = {"041": raise_in_sync, "042": raise_in_async, "046": raise_nothing}
    rec.passers()
    rec.pre("T", ways[vector.id[3:6]])
    rec.tool()
    vector.check(rec, await rec.call(), code="LISTENER_FAILED")


# Asking a person


@vectors("pl-049-ask")
async def test_an_ask_without_an_approval_service_is_denied(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.pre("K", lambda exec, next: Ask("why"))
    rec.tool()
    result = await rec.call(agent=rec.ctx.scope().key)
    vector.check(rec, result, code="APPROVAL_UNAVAILABLE")


@vectors("pl-054-ask", "pl-055-ask")
async def test_an_ask_that_is_not_answered_with_yes_is_denied(rec: Recorder, vector: Vector) -> None:
    outcome = {"pl-054-ask": "cancelled", "pl-055-ask": "unavailable"}[vector.id]
    agent = agent_with(rec, logged(rec, outcome))
    rec.pre("K", lambda exec, next: Ask())
    rec.post("Q")
    rec.ctx.tools.guard(lambda exec: None)
    rec.tool()
    vector.check(rec, await rec.call(agent=agent), code=f"APPROVAL_{outcome.upper()}")


@vectors("pl-059-ask")
async def test_a_person_whose_channel_fails_fails_the_call(rec: Recorder, vector: Vector) -> None:
    async def fail(request: Any) -> str:
        raise RuntimeError("channel boom")

    agent = agent_with(rec, Approval(then=fail))
    rec.pre("K", lambda exec, next: Ask())
    rec.tool()
    vector.check(rec, await rec.call(agent=agent), code="LISTENER_FAILED")


@vectors("pl-060-ask")
async def test_an_approval_service_that_raises_fails_the_call(rec: Recorder, vector: Vector) -> None:
    agent = agent_with(rec, Approval(then=raising(RuntimeError("no open turn"))))
    rec.passers()
    rec.pre("K", lambda exec, next: Ask())
    rec.tool()
    vector.check(rec, await rec.call(agent=agent), code="LISTENER_FAILED")


@vectors("pl-061-ask")
async def test_a_caller_that_aborts_while_a_person_is_asked_has_aborted_before_dispatch(
    rec: Recorder, vector: Vector
) -> None:
    caller = AbortController()

    def abort(request: Any) -> str:
        caller.abort()
        return "cancelled"

    agent = agent_with(rec, Approval(then=abort))
    rec.passers()
    rec.pre("K", lambda exec, next: Ask())
    rec.tool()
    vector.check(rec, await rec.call(agent=agent, signal=caller.signal))


@vectors("pl-062-ask")
async def test_an_ask_that_somebody_else_cancelled_is_denied_as_cancelled(rec: Recorder, vector: Vector) -> None:
    agent = agent_with(rec, Approval("cancelled"))
    rec.pre("K", lambda exec, next: Ask())
    rec.post("Q")
    rec.tool()
    vector.check(rec, await rec.call(agent=agent), code="APPROVAL_CANCELLED")


# Guards


@vectors("pl-065-guard")
async def test_the_first_guard_to_object_ends_the_matter(rec: Recorder, vector: Vector) -> None:
    rec.guard("G1", "first")
    rec.guard("G2", "second")
    rec.tool()
    result = await rec.call()
    vector.check(rec, result, code="GUARDED")
    assert "first" in failure(result, "GUARDED").error.message


@vectors("pl-069-guard")
async def test_a_guard_that_raises_fails_the_call(rec: Recorder, vector: Vector) -> None:
    rec.passers()
    rec.guard("G", raising(RuntimeError("guard boom")))
    rec.tool()
    vector.check(rec, await rec.call(), code="LISTENER_FAILED")


@vectors("pl-072-guard")
async def test_the_guards_of_the_host_come_before_those_of_the_agent(rec: Recorder, vector: Vector) -> None:
    agent = rec.ctx.scope()
    rec.guard("scoped", "no", ctx=agent.ctx)
    rec.guard("global", "no")
    rec.tool()
    vector.check(rec, await rec.call(agent=agent.key), code="GUARDED")


@vectors("pl-073-guard")
async def test_the_guard_of_another_agent_is_not_consulted(rec: Recorder, vector: Vector) -> None:
    rec.guard("scoped", "no", ctx=rec.ctx.scope().ctx)
    rec.tool()
    vector.check(rec, await rec.call(agent=rec.ctx.scope().key))


@vectors("pl-074-guard")
async def test_the_guards_of_the_farthest_ancestor_come_first(rec: Recorder, vector: Vector) -> None:
    parent = rec.ctx.scope()
    child = rec.ctx.scope(parent=parent.key)
    rec.guard("child", "no", ctx=child.ctx)
    rec.guard("parent", "no", ctx=parent.ctx)
    rec.tool()
    vector.check(rec, await rec.call(agent=child.key), code="GUARDED")


@vectors("pl-075-guard")
async def test_a_guard_that_was_undone_is_not_consulted(rec: Recorder, vector: Vector) -> None:
    undo = rec.guard("G", "no")
    undo()
    rec.tool()
    vector.check(rec, await rec.call())


# Aborting


@vectors("pl-210-abort")
async def test_an_abort_before_the_guards_is_found_after_them(rec: Recorder, vector: Vector) -> None:
    caller = AbortController()
    rec.passers()
    rec.pre("A", lambda exec, next: caller.abort() and Allow())
    rec.guard("G")
    rec.tool()
    vector.check(rec, await rec.call(signal=caller.signal))


@vectors("pl-211-abort")
async def test_a_listeners_denial_beats_an_abort(rec: Recorder, vector: Vector) -> None:
    caller = AbortController()
    rec.passers()
    rec.pre("A", lambda exec, next: caller.abort() and Deny("no"))
    rec.tool()
    vector.check(rec, await rec.call(signal=caller.signal), code="DENIED")


@vectors("pl-212-abort")
async def test_a_guards_denial_beats_an_abort(rec: Recorder, vector: Vector) -> None:
    caller = AbortController()
    rec.pre("A", lambda exec, next: caller.abort() and Allow())
    rec.guard("G", "no")
    rec.tool()
    result = await rec.call(signal=caller.signal)
    vector.check(rec, result, code="GUARDED")
    assert code(result) != "ABORTED_BEFORE_DISPATCH"
