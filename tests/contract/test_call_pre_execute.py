"""Contract 6.2: what a decision before the body does, alone and among others."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import pytest
import trio
from pipeline_kit import Approval, Recorder, failure, plugin, raising, success

from dsh_runtime import Allow, Ask, Deny, HarnessError

SAY = {"allow": Allow(), "ask": Ask("please"), "deny": Deny("no")}
STRICTNESS = ["allow", "ask", "deny"]
PAIRS = [(outer, inner) for outer in STRICTNESS for inner in STRICTNESS]


def stricter(first: str, second: str) -> str:
    return max(first, second, key=STRICTNESS.index)


def outright(word: str) -> Any:
    """A listener that answers without asking ``next``."""
    return lambda exec, next: SAY[word]


def having_heard(word: str) -> Any:
    """A listener that hears what lies behind it, and answers for it."""

    async def listener(exec: Any, next: Any) -> Any:
        await next()
        return SAY[word]

    return listener


class Desk:
    """A call of an agent's that a person may be asked about, and what came of it."""

    def __init__(self, rec: Recorder) -> None:
        self.rec = rec
        self.approval = Approval()
        rec.ctx.provide("approval", self.approval)
        rec.tool()
        self.agent = rec.ctx.scope().key

    async def verdict(self) -> str:
        """Run the call: ``deny`` when it was denied, ``ask`` when a person was asked, ``allow`` when it just ran."""
        result = await self.rec.call(agent=self.agent)
        if result.is_error:
            failure(result, "DENIED")
            assert not self.rec.body_ran
            assert not self.approval.requests
            return "deny"
        assert self.rec.count("body:") == 1
        return "ask" if self.approval.requests else "allow"


@pytest.fixture
def desk(rec: Recorder) -> Desk:
    return Desk(rec)


async def test_the_end_of_the_chain_allows(desk: Desk) -> None:
    assert await desk.verdict() == "allow"


@pytest.mark.parametrize("word", STRICTNESS)
async def test_a_single_answer_stands(desk: Desk, word: str) -> None:
    desk.rec.pre("A", outright(word))
    assert await desk.verdict() == word


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
async def test_of_two_answers_outright_the_stricter_stands(desk: Desk, outer: str, inner: str) -> None:
    desk.rec.pre("outer", outright(outer))
    desk.rec.pre("inner", outright(inner))
    assert await desk.verdict() == stricter(outer, inner)


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
async def test_who_has_heard_answers_for_what_lies_behind(desk: Desk, outer: str, inner: str) -> None:
    """Also when its answer is milder: that is how one policy overrides another, in plain sight."""
    desk.rec.pre("outer", having_heard(outer))
    desk.rec.pre("inner", outright(inner))
    assert await desk.verdict() == outer


@pytest.mark.parametrize(("outer", "middle", "inner"), [(a, b, c) for a in STRICTNESS for b, c in PAIRS])
async def test_one_override_in_the_middle_hides_only_what_lies_behind_it(
    desk: Desk, outer: str, middle: str, inner: str
) -> None:
    desk.rec.pre("outer", outright(outer))
    desk.rec.pre("middle", having_heard(middle))
    desk.rec.pre("inner", outright(inner))
    assert await desk.verdict() == stricter(outer, middle)


async def test_a_denial_cuts_the_chain_short(rec: Recorder) -> None:
    rec.tool()
    rec.pre("A", outright("deny"))
    rec.pre("B")
    failure(await rec.call(), "DENIED")
    assert rec.count("pre-execute:B") == 0


@pytest.mark.parametrize("word", ["allow", "ask"])
async def test_a_milder_answer_leaves_the_listeners_behind_heard_once(desk: Desk, word: str) -> None:
    desk.rec.pre("A", outright(word))
    desk.rec.pre("B")
    await desk.verdict()
    assert desk.rec.count("pre-execute:B") == 1


async def test_the_listeners_behind_are_not_heard_again_after_next(desk: Desk) -> None:
    desk.rec.pre("A", having_heard("allow"))
    desk.rec.pre("B")
    await desk.verdict()
    assert desk.rec.count("pre-execute:B") == 1


async def test_calling_next_without_hearing_it_is_not_enough(desk: Desk) -> None:
    def call_alone(exec: Any, next: Any) -> Any:
        next()
        return Allow()

    desk.rec.pre("A", call_alone)
    desk.rec.pre("B", outright("deny"))
    assert await desk.verdict() == "deny"


async def test_giving_up_on_next_is_not_enough(desk: Desk, autojump_clock: Any) -> None:
    async def impatient(exec: Any, next: Any) -> Any:
        with trio.move_on_after(1):
            await next()
        return Allow()

    async def slow_at_first(exec: Any, next: Any) -> Any:
        if desk.rec.count("pre-execute:B") == 1:
            await trio.sleep_forever()
        return Deny("no")

    desk.rec.pre("A", impatient)
    desk.rec.pre("B", slow_at_first)
    assert await desk.verdict() == "deny"


async def test_a_denial_gives_its_reason_to_the_model(rec: Recorder) -> None:
    rec.tool()
    rec.pre("A", lambda exec, next: Deny("the moon is wrong"))
    result = failure(await rec.call(), "DENIED")
    assert "the moon is wrong" in result.error.message
    assert result.content == [{"type": "text", "text": f"Error: {result.error.message}"}]


async def test_a_denial_is_seen_by_post_execute_listeners_but_not_by_wrappers(rec: Recorder) -> None:
    rec.tool()
    rec.pre("A", outright("deny"))
    rec.around("X")
    rec.post("Q")
    await rec.call()
    assert (rec.count("execute:X"), rec.count("post-execute:Q")) == (0, 1)


RUBBISH = [True, "allow", {"kind": "allow"}, Allow, object(), 0, [Allow()]]


@pytest.mark.parametrize("answer", RUBBISH, ids=repr)
async def test_an_answer_of_another_type_fails_closed(rec: Recorder, answer: Any) -> None:
    rec.tool()
    rec.post("Q")
    rec.pre("A", lambda exec, next: answer)
    failure(await rec.call(), "LISTENER_FAILED")
    assert not rec.body_ran
    assert rec.count("post-execute:") == 0


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_answer_of_nothing_fails_closed(rec: Recorder, is_async: bool) -> None:
    async def nothing(exec: Any, next: Any) -> None:
        await next()

    rec.tool()
    rec.pre("A", nothing if is_async else lambda exec, next: None)
    failure(await rec.call(), "LISTENER_FAILED")
    assert not rec.body_ran


async def test_a_rubbish_answer_is_reported_with_plugin_event_function_and_what_to_return(host: Any) -> None:
    class Gate:
        name = "gate"

        def apply(self, ctx: Any) -> None:
            def half_hearted_policy(exec: Any, next: Any) -> Any:
                return True

            ctx.on("tools/pre-execute", half_hearted_policy)

    from pipeline_kit import Recorder

    rec = Recorder(host.ctx)
    rec.tool()
    await host.ctx.plugin(Gate()).wait()
    words = failure(await rec.call(), "LISTENER_FAILED").error.message
    for word in ("gate", "tools/pre-execute", "half_hearted_policy", "Allow", "Deny", "Ask"):
        assert word in words


@pytest.mark.parametrize("reason", [None, 5, ["no"]])
async def test_a_deny_without_a_reason_fails_closed(rec: Recorder, reason: Any) -> None:
    rec.tool()
    rec.pre("A", lambda exec, next: Deny(reason))
    failure(await rec.call(), "LISTENER_FAILED")
    assert not rec.body_ran


async def test_a_deny_with_an_empty_reason_never_runs_the_body(rec: Recorder) -> None:
    rec.tool()
    rec.pre("A", lambda exec, next: Deny(""))
    assert (await rec.call()).is_error
    assert not rec.body_ran


async def test_a_listener_that_fails_goes_straight_to_the_finish(rec: Recorder) -> None:
    rec.passers()
    rec.guard("G")
    rec.tool()
    rec.pre("A", raising(RuntimeError("boom")))
    failure(await rec.call(), "LISTENER_FAILED")
    assert rec.stages == [
        "pre-execute:P",
        "pre-execute:A",
        "finalize(isError=true,code=LISTENER_FAILED)",
        "result:R",
    ]


async def test_a_listeners_own_code_is_kept(rec: Recorder) -> None:
    rec.tool()
    rec.pre("A", raising(HarnessError("mine", code="MINE")))
    assert "mine" in failure(await rec.call(), "MINE").error.message


def catching(then: Any) -> Any:
    """A listener that catches whatever ``next()`` raises, and answers ``then``."""

    async def listener(exec: Any, next: Any) -> Any:
        try:
            return await next()
        except Exception:
            return then

    return listener


@pytest.mark.parametrize("answer", [Allow(), Ask("please")])
@pytest.mark.parametrize("fault", ["raises", "nothing", "rubbish"])
async def test_a_failure_stays_one_although_a_listener_in_front_catches_it(desk: Desk, answer: Any, fault: str) -> None:
    faults = {
        "raises": raising(RuntimeError("boom")),
        "nothing": lambda exec, next: None,
        "rubbish": lambda exec, next: "allow",
    }
    desk.rec.pre("A", catching(answer))
    desk.rec.pre("B", faults[fault])
    failure(await desk.rec.call(agent=desk.agent), "LISTENER_FAILED")
    assert not desk.rec.body_ran
    assert not desk.approval.requests


def failing_at_first(rec: Recorder) -> Any:
    """A listener (as B) that raises the first time that it is heard, and has no objection later."""

    def listener(exec: Any, next: Any) -> Any:
        if rec.count("pre-execute:B") == 1:
            raise RuntimeError("boom")
        return next()

    return listener


async def test_a_failure_that_was_caught_stays_one_although_its_listener_would_allow_by_now(rec: Recorder) -> None:
    rec.tool()
    rec.pre("A", catching(Allow()))
    rec.pre("B", failing_at_first(rec))
    failure(await rec.call(), "LISTENER_FAILED")
    assert not rec.body_ran


async def test_a_failure_that_was_caught_stays_one_although_next_is_called_again(rec: Recorder) -> None:
    async def again(exec: Any, next: Any) -> Any:
        try:
            return await next()
        except Exception:
            return await next()

    rec.tool()
    rec.pre("A", again)
    rec.pre("B", failing_at_first(rec))
    failure(await rec.call(), "LISTENER_FAILED")
    assert not rec.body_ran


async def test_a_failure_stays_one_although_a_listener_in_front_denies(rec: Recorder) -> None:
    rec.tool()
    rec.pre("A", catching(Deny("no")))
    rec.pre("B", raising(RuntimeError("boom")))
    assert (await rec.call()).is_error
    assert not rec.body_ran


async def test_an_override_is_put_down_to_no_one_and_a_denial_to_its_plugin(host: Any) -> None:
    class Strict:
        name = "strict"

        def apply(self, ctx: Any) -> None:
            ctx.on("tools/pre-execute", lambda exec, next: Deny("no"))

    from pipeline_kit import Recorder

    rec = Recorder(host.ctx)
    rec.tool()
    await host.ctx.plugin(Strict()).wait()
    assert plugin(await rec.call()) == "strict"
    rec.pre("A", having_heard("allow"), prepend=True)
    assert success(await rec.call()).value == "ran:echo"


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("name", "other"),
        ("arguments", {}),
        ("call_id", "x"),
        ("agent", "someone"),
        ("parent", None),
        ("root_call_id", "x"),
        ("token", None),
        ("signal", None),
        ("digest", "x"),
        ("dry_run", True),
    ],
)
async def test_the_execution_is_frozen_from_the_start(rec: Recorder, member: str, value: Any) -> None:
    seen: list[Any] = []

    def assign(exec: Any, next: Any) -> Any:
        before = getattr(exec, member)
        with pytest.raises((AttributeError, TypeError)):
            setattr(exec, member, value)
        seen.append(getattr(exec, member) is before or getattr(exec, member) == before)
        return next()

    rec.tool()
    rec.pre("A", assign)
    success(await rec.call())
    assert seen == [True]
