"""Contract 6.2: asking a person about a call."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from pipeline_kit import Approval, Recorder, failure, raising, success

from dsh_runtime import AbortController, Ask, Deny

REFUSALS = {
    "rejected": "APPROVAL_REJECTED",
    "expired": "APPROVAL_EXPIRED",
    "cancelled": "APPROVAL_CANCELLED",
    "unavailable": "APPROVAL_UNAVAILABLE",
}


@pytest.fixture
def ask(rec: Recorder) -> Recorder:
    """A recorder with a tool that a listener wants a person asked about."""
    rec.tool()
    rec.pre("A", lambda exec, next: Ask("is it safe?"))
    return rec


def agent(rec: Recorder, approval: Approval) -> Any:
    rec.ctx.provide("approval", approval)
    return rec.ctx.scope().key


async def test_only_allowed_once_goes_on(ask: Recorder) -> None:
    success(await ask.call(agent=agent(ask, Approval("allowed-once"))))


@pytest.mark.parametrize(("outcome", "expected"), REFUSALS.items())
async def test_every_other_outcome_is_denied_with_a_code_of_its_own(ask: Recorder, outcome: str, expected: str) -> None:
    ask.post("Q")
    failure(await ask.call(agent=agent(ask, Approval(outcome))), expected)
    assert not ask.body_ran
    assert ask.count("post-execute:Q") == 1


async def test_every_outcome_has_a_reason_of_its_own(ask: Recorder) -> None:
    approval = Approval()
    key = agent(ask, approval)
    reasons = set()
    for approval.outcome, expected in REFUSALS.items():
        reasons.add(failure(await ask.call(agent=key), expected).error.message)
    assert len(reasons) == len(REFUSALS)


async def test_without_an_approval_service_an_ask_is_denied(ask: Recorder) -> None:
    failure(await ask.call(agent=ask.ctx.scope().key), "APPROVAL_UNAVAILABLE")
    assert not ask.body_ran


async def test_without_an_agent_an_ask_is_denied_and_nobody_asked(ask: Recorder) -> None:
    approval = Approval()
    agent(ask, approval)
    failure(await ask.call(), "APPROVAL_UNAVAILABLE")
    assert not approval.requests
    assert not ask.body_ran


async def test_no_service_and_no_agent_have_reasons_of_their_own(ask: Recorder) -> None:
    without_service = failure(await ask.call(agent=ask.ctx.scope().key), "APPROVAL_UNAVAILABLE")
    agent(ask, Approval())
    without_agent = failure(await ask.call(), "APPROVAL_UNAVAILABLE")
    assert without_service.error.message != without_agent.error.message


@pytest.mark.parametrize("answer", [None, True, "allowed", "ALLOWED-ONCE", object()], ids=repr)
async def test_a_rubbish_answer_fails_closed(ask: Recorder, answer: Any) -> None:
    ask.post("Q")
    failure(await ask.call(agent=agent(ask, Approval(answer))), "LISTENER_FAILED")
    assert not ask.body_ran
    assert ask.count("post-execute:") == 0


async def test_an_approval_service_that_raises_fails_closed(ask: Recorder) -> None:
    ask.post("Q")
    failure(await ask.call(agent=agent(ask, Approval(then=raising(RuntimeError("boom"))))), "LISTENER_FAILED")
    assert not ask.body_ran
    assert ask.count("post-execute:") == 0


async def test_a_person_is_asked_once_however_many_listeners_want_it(ask: Recorder) -> None:
    approval = Approval()
    ask.pre("B", lambda exec, next: Ask("and this?"))
    success(await ask.call(agent=agent(ask, approval)))
    assert len(approval.requests) == 1


async def test_nobody_is_asked_about_a_call_that_is_denied(ask: Recorder) -> None:
    approval = Approval()
    ask.pre("B", lambda exec, next: Deny("no"))
    failure(await ask.call(agent=agent(ask, approval)), "DENIED")
    assert not approval.requests


async def test_the_request_says_which_call_it_is_and_why(ask: Recorder) -> None:
    approval = Approval()
    observed: list[Any] = []
    ask.observe("R", lambda exec, result: observed.append(exec))
    key = agent(ask, approval)
    await ask.call(arguments={"x": 1}, agent=key)
    (request,) = approval.requests
    assert request.reason == "is it safe?"
    assert (request.exec.name, request.exec.arguments, request.exec.agent) == ("echo", {"x": 1}, key)
    assert request.exec.token is observed[0].token
    assert request.digest == observed[0].digest


async def test_a_yes_is_for_one_call_alone(ask: Recorder) -> None:
    approval = Approval()
    key = agent(ask, approval)
    await ask.call(agent=key)
    approval.outcome = "rejected"
    failure(await ask.call(agent=key), "APPROVAL_REJECTED")
    assert len(approval.requests) == 2


async def test_a_tool_that_went_while_a_person_was_asked_is_unknown(rec: Recorder) -> None:
    undo = rec.tool()
    rec.pre("A", lambda exec, next: Ask())
    approval = Approval(then=lambda request: undo() or "allowed-once")
    failure(await rec.call(agent=agent(rec, approval)), "UNKNOWN_TOOL")
    assert not rec.body_ran


async def test_an_abort_while_a_person_is_asked_runs_no_body(ask: Recorder) -> None:
    caller = AbortController()

    async def wait(request: Any) -> str:
        await request.exec.signal.wait()
        return "cancelled"

    key = agent(ask, Approval(then=wait))
    results: list[Any] = []

    async def call() -> None:
        results.append(await ask.call(agent=key, signal=caller.signal))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        caller.abort()
    failure(results[0], "ABORTED_BEFORE_DISPATCH")
    assert not ask.body_ran


async def test_a_yes_after_an_abort_runs_no_body(ask: Recorder) -> None:
    caller = AbortController()
    approval = Approval(then=lambda request: caller.abort() and "allowed-once")
    failure(await ask.call(agent=agent(ask, approval), signal=caller.signal), "ABORTED_BEFORE_DISPATCH")
    assert not ask.body_ran


async def test_a_persons_no_beats_an_abort(ask: Recorder) -> None:
    caller = AbortController()
    approval = Approval(then=lambda request: caller.abort() and "rejected")
    failure(await ask.call(agent=agent(ask, approval), signal=caller.signal), "APPROVAL_REJECTED")
