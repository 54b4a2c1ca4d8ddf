"""Rows of calls, whatever the agents do."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from attrs import define, field, frozen
from dsh_hookspecs import ExecutionToken
from dsh_plugin_repeat_reminder._streaks import Streaks
from hypothesis import given
from hypothesis import strategies as st


@frozen(eq=False)
class Call:
    """As much of a call as a row looks at."""

    agent: Any
    digest: str
    token: ExecutionToken = field(factory=ExecutionToken)


@define(eq=False)
class Key:
    """A key that equals nothing but itself."""


@frozen
class ValueKey:
    """A key that equals others of the same name."""

    name: str


def count(streaks: Streaks, agent: Hashable, digest: str) -> int:
    call: Any = Call(agent, digest)
    return streaks.count(call)


@given(calls=st.lists(st.tuples(st.sampled_from(["ada", "bob", None, 3]), st.sampled_from("xyz")), max_size=60))
def test_a_count_is_the_length_of_the_agents_current_run(calls: list[tuple[Hashable, str]]) -> None:
    streaks = Streaks()
    made: dict[Hashable, list[str]] = {}
    for agent, digest in calls:
        row = made.setdefault(agent, [])
        row.append(digest)
        run = next((n for n, other in enumerate(reversed(row)) if other != digest), len(row))
        assert count(streaks, agent, digest) == run


@given(agents=st.lists(st.integers(0, 50), max_size=100), limit=st.integers(1, 10))
def test_no_more_agents_are_kept_than_the_limit_and_the_latest_are(agents: list[int], limit: int) -> None:
    streaks = Streaks(limit)
    for agent in agents:
        count(streaks, agent, "x")
        assert len(streaks) <= limit
    for agent in list(dict.fromkeys(reversed(agents)))[:limit]:
        assert count(streaks, agent, "x") > 1


def test_a_key_that_equals_nothing_else_is_forgotten_with_its_owner() -> None:
    streaks = Streaks()
    key = Key()
    assert [count(streaks, key, "x") for _ in range(2)] == [1, 2]
    del key
    assert len(streaks) == 0


def test_a_key_that_is_made_afresh_for_each_call_is_the_same_agents() -> None:
    streaks = Streaks()
    assert [count(streaks, ValueKey("ada"), "x") for _ in range(3)] == [1, 2, 3]
