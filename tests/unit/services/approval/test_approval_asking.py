"""What becomes of a question: the answer, the deadline, an abort, a failure; and what is told of it."""

# ruff: noqa: A006  # listeners take what the hook interface calls next

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from dsh_hookspecs import Ask, HarnessError

from dsh_runtime import ToolDefinition, ToolExecutionInput, ToolOutput

Next = Callable[[], Any]


async def hang(next: Next) -> str:
    await trio.sleep_forever()
    raise AssertionError("unreachable")


@pytest.mark.parametrize("answer", ["allowed-once", "rejected", "expired", "cancelled", "unavailable"])
async def test_the_answer_of_a_channel_is_the_outcome(desk: Any, answer: str) -> None:
    """Told with the plugin that gave it."""
    await desk.channel("person", lambda next: answer)
    assert await desk.ask() == answer
    assert desk.decided == [(answer, "person")]


async def test_nobody_to_ask_is_unavailable(desk: Any) -> None:
    """At once, and nobody has answered."""
    assert await desk.ask() == "unavailable"
    assert desk.decided == [("unavailable", None)]


async def test_a_channel_may_leave_it_to_the_next(desk: Any) -> None:
    """The decision is told as that of the one who made it."""
    await desk.channel("absent", lambda next: next())
    await desk.channel("present", lambda next: "rejected")
    assert await desk.ask() == "rejected"
    assert desk.decided == [("rejected", "present")]


async def test_a_channel_in_front_may_decide_otherwise(desk: Any) -> None:
    """Then the decision is its own."""

    async def sceptic(next: Next) -> str:
        await next()
        return "rejected"

    await desk.channel("sceptic", sceptic)
    await desk.channel("person", lambda next: "allowed-once")
    assert await desk.ask() == "rejected"
    assert desk.decided == [("rejected", "sceptic")]


async def test_channels_get_the_digest_of_the_call(desk: Any) -> None:
    """Also where the caller gave none."""
    seen: list[Any] = []
    await desk.channel("person", lambda request, next: seen.append(request) or "rejected")
    await desk.ask({"path": "a"})
    await desk.ask({"path": "b"})
    first, second = seen
    assert first.digest == first.exec.digest
    assert first.digest != second.digest
    assert desk.asked == seen


async def test_a_request_with_another_digest_is_refused(desk: Any) -> None:
    """Nobody is asked: an answer would be for something else than what is going to run."""
    asked: list[Any] = []
    await desk.channel("person", lambda request, next: asked.append(request) or "allowed-once")
    other = desk.request({"path": "b"}).exec.digest
    with pytest.raises(HarnessError, match="ask with the digest of the call that is to run") as caught:
        await desk.ask({"path": "a"}, digest=other)
    assert caught.value.code == "APPROVAL_INVALID"
    assert (asked, desk.asked, desk.decided) == ([], [], [])


@pytest.mark.parametrize(
    ("settings", "own", "expected"),
    [
        ({}, None, 300),
        ({"approval_timeout": 5}, None, 5),
        ({}, 7, 7),
        ({"approval_timeout": 5}, 7, 5),
        ({"approval_timeout": 0}, 7, 7),
    ],
)
async def test_a_channel_that_hangs_makes_the_request_expire(
    open_desk: Any, autojump_clock: Any, settings: dict[str, Any], own: float | None, expected: float
) -> None:
    """After the host's deadline or the request's own, whichever is the shorter; channels know which."""
    async with open_desk(**settings) as desk:
        await desk.channel("person", hang)
        start = trio.current_time()
        assert await desk.ask(deadline=own) == "expired"
        assert trio.current_time() - start == pytest.approx(expected)
        assert desk.asked[0].deadline == expected
        assert desk.decided == [("expired", None)]


@pytest.mark.parametrize("off", [0, False])
async def test_without_a_deadline_a_person_may_take_their_time(open_desk: Any, autojump_clock: Any, off: Any) -> None:
    """As long as it takes."""

    async def slow(next: Next) -> str:
        await trio.sleep(80_000)
        return "allowed-once"

    async with open_desk(approval_timeout=off) as desk:
        await desk.channel("person", slow)
        assert await desk.ask() == "allowed-once"
        assert desk.asked[0].deadline is None


async def test_a_clock_that_jumps_back_moves_no_deadline(
    desk: Any, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlines go by the loop's clock, not by the wall's."""

    async def hang_while_clocks_change(next: Next) -> str:
        monkeypatch.setattr(time, "time", lambda: 0.0)
        return await hang(next)

    await desk.channel("person", hang_while_clocks_change)
    start = trio.current_time()
    assert await desk.ask() == "expired"
    assert trio.current_time() - start == pytest.approx(300)


async def test_an_answer_after_the_deadline_does_not_count(desk: Any, autojump_clock: Any) -> None:
    """Nor does one that a channel gives because it is told to stop."""

    async def late(next: Next) -> str:
        try:
            return await hang(next)
        except trio.Cancelled:
            return "allowed-once"

    await desk.channel("person", late)
    assert await desk.ask() == "expired"
    assert desk.decided == [("expired", None)]


async def test_an_aborted_call_is_asked_about_no_longer(desk: Any, autojump_clock: Any) -> None:
    """The outcome is ``cancelled``, and nobody has answered."""

    async def abort(next: Next) -> str:
        desk.controller.abort("changed my mind")
        return await hang(next)

    await desk.channel("person", abort)
    assert await desk.ask() == "cancelled"
    assert desk.decided == [("cancelled", None)]


@pytest.mark.parametrize(("answer", "outcome"), [("allowed-once", "cancelled"), ("rejected", "rejected")])
async def test_a_yes_in_the_same_breath_as_an_abort_does_not_count(desk: Any, answer: str, outcome: str) -> None:
    """Before anybody could be told to stop. A no does: it allows nothing."""

    def person() -> str:
        desk.controller.abort("changed my mind")
        return answer

    await desk.channel("person", person)
    assert await desk.ask() == outcome
    assert [told for told, _ in desk.decided] == [outcome]


async def test_an_abort_from_another_thread_reaches_the_question(desk: Any) -> None:
    """As it reaches the call."""

    async def abort(next: Next) -> str:
        await trio.to_thread.run_sync(desk.controller.abort)
        return await hang(next)

    await desk.channel("person", abort)
    assert await desk.ask() == "cancelled"


async def test_a_caller_that_is_cancelled_is_told_as_cancelled(desk: Any, autojump_clock: Any) -> None:
    """And the cancellation goes on its way."""
    await desk.channel("person", hang)
    with trio.move_on_after(1) as scope:
        await desk.ask()
    assert scope.cancelled_caught
    assert desk.decided == [("cancelled", None)]


async def test_a_channel_that_raises_fails_the_request(desk: Any) -> None:
    """Whatever the channels behind it would say."""

    def broken(next: Next) -> str:
        raise RuntimeError("boom")

    await desk.channel("broken", broken)
    await desk.channel("person", lambda next: "allowed-once")
    with pytest.raises(RuntimeError, match="boom"):
        await desk.ask()
    assert desk.decided == [("failed", None)]


@pytest.mark.parametrize("answer", ["yes", "", None, True])
async def test_rubbish_is_no_answer(desk: Any, answer: Any) -> None:
    """The error names plugin, event and function, and says what to return."""
    await desk.channel("chatty", lambda next: answer)
    with pytest.raises(HarnessError, match=r"plugin 'chatty', listener .*'approval/request'.*return one of"):
        await desk.ask()
    assert desk.decided == [("failed", None)]


async def test_a_host_that_never_asks(open_desk: Any) -> None:
    """Says ``unavailable`` at once; the decision is told, and that nobody was asked shows in that no question is."""
    asked: list[Any] = []
    async with open_desk(approval="never") as desk:
        await desk.channel("person", lambda request, next: asked.append(request) or "allowed-once")
        assert await desk.ask() == "unavailable"
        assert (asked, desk.asked, desk.decided) == ([], [], [("unavailable", None)])


async def test_only_channels_of_the_calls_scope_are_asked(desk: Any) -> None:
    """The host's, and those of the scopes on the way to its agent."""
    asked: list[str] = []

    def channel(name: str) -> Any:
        return lambda next: asked.append(name) or next()

    outer, beside = desk.host.ctx.scope(), desk.host.ctx.scope()
    inner = desk.host.ctx.scope(parent=outer.key)
    for name, scope in {"outer": outer, "beside": beside, "inner": inner}.items():
        scope.ctx.on("approval/request", channel(name))
    desk.host.ctx.on("approval/request", channel("host"))
    await desk.ask(agent=outer.key)
    assert sorted(asked) == ["host", "outer"]


async def test_no_trace_is_kept_of_an_agent_that_is_no_scope(desk: Any) -> None:
    """An embedding application may give each call an agent of its own."""

    class Agent:
        pass

    await desk.channel("person", lambda: "allowed-once")
    agent = Agent()
    assert await desk.ask(agent=agent) == "allowed-once"
    desk.asked.clear()
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None


async def test_observers_of_a_scope_hear_of_its_calls(desk: Any) -> None:
    """Also of what is decided when the scope has gone meanwhile."""
    told: list[str] = []
    scope = desk.host.ctx.scope()
    scope.ctx.on("approval/decided", lambda outcome: told.append(outcome))

    async def close(next: Next) -> str:
        await scope.dispose()
        return "rejected"

    await desk.channel("person", close)
    await desk.ask(agent=scope.key)
    await desk.ask()
    assert told == ["rejected"]


async def test_a_failing_channel_keeps_the_body_from_running(desk: Any) -> None:
    """Through the whole pipeline."""
    ran: list[Any] = []
    definition = ToolDefinition("rm", "", {"type": "object"}, ToolOutput({}), lambda args, exec: ran.append(args))
    desk.host.ctx.tools.register(definition)
    desk.host.ctx.on("tools/pre-execute", lambda next: Ask("sure?"))

    def broken(next: Next) -> str:
        raise RuntimeError("boom")

    await desk.channel("broken", broken)
    call = ToolExecutionInput("c1", "rm", {}, desk.controller.signal, agent=desk.host.ctx.scope().key)
    result = await desk.host.ctx.tools.execute(call)
    assert result.is_error
    assert (result.error.info.code, result.error.info.plugin) == ("LISTENER_FAILED", "broken")
    assert ran == []


async def test_whether_there_is_somebody_to_ask(desk: Any) -> None:
    """A channel or an offer; not what listens in front of them, nor what is there for one scope alone."""
    assert not desk.approval.has_channel()
    desk.host.ctx.on("approval/request", lambda next: next(), prepend=True)
    scope = desk.host.ctx.scope()
    scope.ctx.on("approval/request", lambda next: next())
    assert not desk.approval.has_channel()
    withdraw = desk.approval.offer()
    assert desk.approval.has_channel()
    withdraw()
    assert not desk.approval.has_channel()
    await desk.channel("person", lambda next: next())
    assert desk.approval.has_channel()
