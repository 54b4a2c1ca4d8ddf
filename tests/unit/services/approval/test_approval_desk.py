"""Answers from outside the chain of channels: by id, bound to the digest, once."""

# ruff: noqa: A006

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from dsh_hookspecs import HarnessError

from dsh_runtime import first_answer


async def a_ui(desk: Any, answer: Any = None) -> Any:
    """Mount a plugin that offers to answer, and notes each request or does with it what it is told to."""
    seen: list[Any] = []

    def apply(ctx: Any) -> None:
        ctx.approval.offer(lambda pending: answer(ctx, pending) if answer else seen.append(pending))

    return await desk.plugin("ui", apply), seen


async def one_pending(desk: Any) -> Any:
    while not desk.approval.pending():
        await trio.lowlevel.checkpoint()
    (pending,) = desk.approval.pending()
    return pending


@pytest.mark.parametrize("outcome", ["allowed-once", "rejected", "cancelled"])
async def test_a_pending_request_is_answered_by_its_id(desk: Any, outcome: str) -> None:
    """The decision is told as that of the plugin that answered."""
    await a_ui(desk, lambda ctx, pending: ctx.approval.answer(pending.id, pending.request.digest, outcome))
    assert await desk.ask() == outcome
    assert desk.decided == [(outcome, "ui")]
    assert desk.approval.pending() == ()


async def test_without_an_offer_nothing_waits(desk: Any) -> None:
    """Looking at what is pending is no offer to answer it."""
    assert desk.approval.pending() == ()
    assert await desk.ask() == "unavailable"


async def test_only_the_first_answer_counts(desk: Any) -> None:
    """Whatever the second one says."""
    counted: list[bool] = []

    def answer_twice(ctx: Any, pending: Any) -> None:
        for outcome in ("rejected", "allowed-once"):
            counted.append(ctx.approval.answer(pending.id, pending.request.digest, outcome))

    await a_ui(desk, answer_twice)
    assert await desk.ask() == "rejected"
    assert counted == [True, False]


async def test_an_answer_about_another_call_does_not_count(desk: Any) -> None:
    """The request goes on waiting for its own."""
    counted: list[bool] = []

    def answer(ctx: Any, pending: Any) -> None:
        other = desk.request({"path": "/"}).exec.digest
        counted.append(ctx.approval.answer(pending.id, other, "allowed-once"))
        counted.append(ctx.approval.answer("no-such-id", pending.request.digest, "allowed-once"))
        assert pending in ctx.approval.pending()
        counted.append(ctx.approval.answer(pending.id, pending.request.digest, "rejected"))

    await a_ui(desk, answer)
    assert await desk.ask({"path": "a"}) == "rejected"
    assert counted == [False, False, True]


async def test_a_late_answer_does_not_count(open_desk: Any, autojump_clock: Any) -> None:
    """When the deadline has passed, the request is pending no more."""
    async with open_desk(approval_timeout=5) as desk:
        _, seen = await a_ui(desk)
        assert await desk.ask() == "expired"
        assert desk.approval.pending() == ()
        assert not desk.approval.answer(seen[0].id, seen[0].request.digest, "allowed-once")


@pytest.mark.parametrize("outcome", ["yes", "expired", "unavailable", None])
async def test_what_nobody_can_answer_is_refused(desk: Any, outcome: Any) -> None:
    """An expired question, for one, is for the host to tell."""
    with pytest.raises(HarnessError, match="allowed-once, rejected, cancelled"):
        desk.approval.answer("any", "any", outcome)


async def test_two_pending_requests_are_told_apart(desk: Any) -> None:
    """Each is answered for itself."""
    _, seen = await a_ui(desk)
    outcomes: dict[str, str] = {}

    async def ask(path: str) -> None:
        outcomes[path] = await desk.ask({"path": path})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "a")
        nursery.start_soon(ask, "b")
        await trio.testing.wait_all_tasks_blocked()
        for pending in seen:
            outcome = "allowed-once" if pending.request.exec.arguments["path"] == "a" else "rejected"
            assert desk.approval.answer(pending.id, pending.request.digest, outcome)
    assert outcomes == {"a": "allowed-once", "b": "rejected"}


async def test_when_the_last_offer_goes_nothing_waits_any_longer(desk: Any) -> None:
    """A question is not left with nobody."""
    fiber, _ = await a_ui(desk)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_expect, desk, "unavailable")
        await one_pending(desk)
        await fiber.dispose()


async def _expect(desk: Any, outcome: str) -> None:
    assert await desk.ask() == outcome


async def test_another_offer_keeps_a_request_waiting(desk: Any) -> None:
    """While one of two plugins is left, it may answer."""
    fiber, _ = await a_ui(desk)
    undo = desk.host.ctx.approval.offer()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_expect, desk, "rejected")
        pending = await one_pending(desk)
        await fiber.dispose()
        assert desk.approval.answer(pending.id, pending.request.digest, "rejected")
    undo()
    assert await desk.ask() == "unavailable"


async def test_a_ui_that_fails_when_told_fails_the_request(desk: Any) -> None:
    """Nobody would have been asked."""

    def broken(ctx: Any, pending: Any) -> None:
        raise RuntimeError("no window")

    await a_ui(desk, broken)
    with pytest.raises(RuntimeError, match="no window"):
        await desk.ask()
    assert desk.approval.pending() == ()
    assert desk.decided == [("failed", None)]


async def test_an_offer_for_a_scope_is_for_its_calls_alone(desk: Any) -> None:
    """It sees no others, and answers no others."""
    mine, other = desk.host.ctx.scope(), desk.host.ctx.scope()
    seen: list[Any] = []
    mine.ctx.approval.offer(seen.append)
    assert await desk.ask(agent=other.key) == "unavailable"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_ask_for, desk, mine.key, "allowed-once")
        pending = await one_pending(desk)
        assert other.ctx.approval.pending() == ()
        assert not other.ctx.approval.answer(pending.id, pending.request.digest, "rejected")
        assert mine.ctx.approval.pending() == (pending,) == tuple(seen)
        assert mine.ctx.approval.answer(pending.id, pending.request.digest, "allowed-once")


async def _ask_for(desk: Any, agent: Any, outcome: str) -> None:
    assert await desk.ask(agent=agent) == outcome


async def test_the_desk_races_a_channel_that_races(desk: Any) -> None:
    """Whoever answers first, the other is asked no longer."""
    stopped = trio.Event()

    async def prompt() -> Any:
        try:
            await trio.sleep_forever()
        finally:
            stopped.set()

    await desk.channel("terminal", lambda next: first_answer(next, prompt))
    await a_ui(desk, lambda ctx, pending: ctx.approval.answer(pending.id, pending.request.digest, "allowed-once"))
    assert await desk.ask() == "allowed-once"
    assert stopped.is_set()
    assert desk.decided == [("allowed-once", "ui")]
