"""Assertions: what they accept, and what they say of what they do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dsh_hookspecs import Accept, Allow, Deny

from dsh_runtime import ToolDefinition, ToolOutput
from dsh_runtime.testing import (
    Call,
    Denial,
    assert_denied,
    assert_failed,
    assert_ok,
    assert_told,
    call,
    open_trial,
    tell,
)
from dsh_runtime.testing.differences import differences


class Echo:
    """A tool that returns its arguments."""

    name = "echo"
    inject = ("tools",)

    def apply(self, ctx: Any) -> None:
        definition = ToolDefinition("echo", "…", {"type": "object"}, ToolOutput(schema={}), self.execute)
        ctx.tools.register(definition)

    async def execute(self, args: Any, exec: Any) -> Any:
        return args


class Watcher:
    """Hears everything, and decides in one way."""

    def __init__(self, name: str, decision: Any) -> None:
        self.name = name
        self.decision = decision

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/pre-execute" if isinstance(self.decision, Allow | Deny) else "tools/post-execute", self.judge)

    def judge(self) -> Any:
        return self.decision


def complaint(assertion: Callable[[], Any]) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion()
    return str(caught.value)


async def test_a_failed_assertion_tells_who_was_asked_and_what_they_said() -> None:
    async with open_trial(Watcher("lenient", Allow()), Denial("not today"), Echo()) as trial:
        result = await trial.call("echo")
    text = complaint(lambda: assert_ok(result))
    for words in ("expected a success", "DENIED", "decided by: denial", "lenient (Watcher.judge)", "deny: not today"):
        assert words in text
    assert "recorder" not in text


async def test_a_value_that_differs_is_told_by_its_places() -> None:
    async with open_trial(Echo()) as trial:
        result = await trial.call("echo", {"a": [1, {"b": "x"}], "c": True})
    text = complaint(lambda: assert_ok(result, {"a": [1, {"b": "y"}], "c": 1, "d": None}))
    assert 'value.a[1].b: expected "y", got "x"' in text
    assert "value.c: expected 1, got true" in text
    assert "value.d: expected null, got nothing" in text
    assert_ok(result, {"a": [1, {"b": "x"}], "c": True})


async def test_denials_are_told_from_other_failures() -> None:
    async with open_trial(Denial("not today", tools=["other"]), Echo()) as trial:
        denied = await trial.call("other")
        unknown = await trial.call("nothing")
        succeeded = await trial.call("echo")
    assert_denied(denied, plugin="denial", reason="not today")
    for wrong in (
        lambda: assert_denied(unknown),
        lambda: assert_denied(succeeded),
        lambda: assert_denied(denied, plugin="another"),
        lambda: assert_denied(denied, reason="tomorrow"),
        lambda: assert_failed(denied, "GUARDED"),
        lambda: assert_failed(succeeded),
        lambda: assert_ok(denied),
    ):
        assert "expected" in complaint(wrong)


async def test_a_story_is_asserted_step_by_step() -> None:
    async with open_trial(Watcher("one", Allow()), Watcher("two", Accept()), Echo()) as trial:
        result = await trial.call("echo")
    assert_told(result, ("one", "allow"), ("two", "accept"))
    assert "in its turn" in complaint(lambda: assert_told(result, ("two", "accept"), ("one", "allow")))
    assert [step["plugin"] for step in trial.story(result)] == ["one", "echo", "two"]


async def test_a_story_is_told_from_a_host_that_keeps_a_log_too() -> None:
    async with open_trial(Denial("not today"), Echo(), log=True) as trial:
        result = await trial.call("echo")
    assert "denial" in tell(result)
    assert_told(result, ("denial", "deny"))


def test_a_call_is_a_pair_of_name_and_arguments() -> None:
    assert (
        call("greet", {"my-name": 1}, other=2)
        == ("greet", {"my-name": 1, "other": 2})
        == Call(*call("greet", {"my-name": 1, "other": 2}))
    )


def test_differences_of_large_values_are_cut() -> None:
    found = differences(list(range(100)), list(range(1, 101)))
    assert len(found) < 12
    assert found[-1] == "and more"
