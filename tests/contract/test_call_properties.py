"""Whatever listeners, guards, people, wrappers, bodies and callers do: what always holds of a call."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipeline_kit import Recorder, assert_lossless_and_frozen, policy_timeout
from pipeline_plans import (
    APPROVAL,
    BODY,
    GUARD,
    PLACES,
    POST,
    PRE,
    WRAP,
    Plan,
    Planned,
    may_start,
)

from dsh_runtime import open_host

HARMLESS = ("pass", "pass async")


def quick(examples: int) -> settings:
    """Few examples, each a host of its own, with no opinion on how long one takes."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def words(*choices: str) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(choices), max_size=PLACES).map(tuple)


def plans(**given: st.SearchStrategy[Any]) -> st.SearchStrategy[Plan]:
    """Plans of every kind, or of the given kinds."""
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "pre": words(*PRE),
        "guards": words(*GUARD),
        "wrap": words(*WRAP),
        "post": words(*POST),
        "body": st.sampled_from(BODY),
        "approval": st.sampled_from(APPROVAL),
        "parallel": st.booleans(),
    }
    return st.builds(Plan, **{**kinds, **given})


LENIENT = {
    "pre": words(*HARMLESS, "allow", "override", "twice", "drop", "soften"),
    "guards": words("none"),
}


def run(*plans: Plan, batch: int | None = None) -> tuple[Planned, list[Any]]:
    """Run the plans in a host of their own, in virtual time; check what always holds.

    They run side by side, or as a batch of which so many may run in parallel.
    """
    return trio.run(_run, plans, batch, clock=trio.testing.MockClock(autojump_threshold=0))


async def _run(plans: Sequence[Plan], batch: int | None) -> tuple[Planned, list[Any]]:
    async with open_host(policy_timeout(5)) as host:
        planned = Planned(Recorder(host.ctx))
        await trio.testing.wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        with _within_reason(plans):
            outcomes = await (planned.run(plans) if batch is None else planned.run_batch(plans, batch))
        _check_results(planned, plans, outcomes)
        await trio.testing.wait_all_tasks_blocked()
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert planned.callbacks() == 0
        assert planned.started == planned.ended
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
    return planned, outcomes


@contextlib.contextmanager
def _within_reason(plans: Sequence[Plan]) -> Iterator[None]:
    """Fail instead of hanging: in virtual time, or in real time where a thread would let virtual time jump."""
    threaded = any(plan.tool == "threaded" for plan in plans)
    token = trio.lowlevel.current_trio_token()
    with trio.move_on_after(math.inf if threaded else 1000) as scope:
        timer = threading.Timer(20, token.run_sync_soon, [scope.cancel])
        if threaded:
            timer.start()
        yield
        timer.cancel()
    assert not scope.cancelled_caught, "a call never came to rest"


def _check_results(planned: Planned, plans: Sequence[Plan], outcomes: Sequence[Any]) -> None:
    for index, (plan, outcome) in enumerate(zip(plans, outcomes, strict=True)):
        (observed,) = planned.observed[str(index)]
        assert_lossless_and_frozen(observed)
        if outcome is None:
            assert planned.scopes[str(index)].cancelled_caught
            assert observed.is_error
        else:
            assert outcome is observed
        if not may_start(plan):
            assert observed.is_error
            assert str(index) not in planned.started
    assert len(planned.tokens) == len(set(planned.tokens))


@quick(150)
@given(plans())
def test_one_frozen_result_is_observed_and_nothing_is_left_running(plan: Plan) -> None:
    run(plan)


@quick(60)
@given(plans(**LENIENT))
def test_the_same_where_policy_lets_the_body_start(plan: Plan) -> None:
    run(plan)


@quick(50)
@given(st.lists(plans(), min_size=2, max_size=5))
def test_the_same_for_calls_side_by_side(several: list[Plan]) -> None:
    run(*several)


UNCANCELLED = {
    "pre": words(*(word for word in PRE if word != "cancel")),
    "wrap": words(*(word for word in WRAP if word != "cancel")),
    "post": words(*(word for word in POST if word != "cancel")),
    "body": st.sampled_from([word for word in BODY if word != "cancel"]),
    "approval": st.sampled_from([word for word in APPROVAL if word != "cancel"]),
}


@quick(50)
@given(st.lists(plans(**UNCANCELLED), min_size=1, max_size=6), st.integers(1, 4))
def test_the_same_for_a_batch_and_results_come_in_its_order(several: list[Plan], at_most: int) -> None:
    planned, outcomes = run(*several, batch=at_most)
    roots = [call_id for call_id in planned.observed if ":" not in call_id]
    assert roots == [str(index) for index in range(len(several))]
    assert len(outcomes) == len(several)


@quick(60)
@given(plans(wrap=words(*HARMLESS), post=words(*HARMLESS), body=st.just("value")))
def test_a_body_starts_once_exactly_when_policy_allows(plan: Plan) -> None:
    planned, (outcome,) = run(plan)
    assert planned.started.get("0", 0) == (1 if may_start(plan) else 0)
    if may_start(plan):
        assert not outcome.is_error


REFUSING = ("deny", "raise", "exit", "rubbish", "nothing", "hang", "fail at first")


@quick(40)
@given(plans(pre=words(*HARMLESS, "allow", "soften", "twice", "drop", *REFUSING), wrap=words(*HARMLESS, "twice")))
def test_no_listener_in_front_that_only_softens_lets_a_refused_body_start(plan: Plan) -> None:
    planned, _ = run(plan)
    if set(plan.pre) & set(REFUSING):
        assert "0" not in planned.started


@quick(40)
@given(plans(pre=words(*HARMLESS), guards=words("none"), wrap=words(*HARMLESS, "twice", "fresh signal")))
def test_a_failing_post_listener_never_leaves_a_success(plan: Plan) -> None:
    _, (outcome,) = run(plan)
    reached = _reached(plan.post)
    if outcome is not None and set(reached) & {"raise", "exit", "rubbish", "nothing", "hang"}:
        assert outcome.is_error


@quick(40)
@given(plans(body=st.sampled_from(["abort", "abort and wait", "abort and clean up badly"]), **LENIENT))
def test_a_call_that_was_aborted_never_succeeds(plan: Plan) -> None:
    planned, (outcome,) = run(plan)
    if outcome is not None and planned.callers["0"].signal.aborted:
        assert outcome.is_error


def _reached(post: Sequence[str]) -> Sequence[str]:
    """The listeners that are heard: up to the first that fails or cancels."""
    for index, word in enumerate(post):
        if word in ("raise", "exit", "rubbish", "nothing", "hang", "cancel"):
            return post[: index + 1]
    return post
