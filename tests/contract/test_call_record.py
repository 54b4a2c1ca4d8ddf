"""The record: a call before any policy, its result before anybody hears of it, and the story of who decided."""

# ruff: noqa: A006  # listeners are lambdas of exec and next

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest
import trio
from dsh_hookspecs import Allow, Ask, Block, Deny

from dsh_runtime import AbortController, ToolExecutionInput, open_host, tool
from dsh_runtime.tools.story import PASS, Note, Story


class Journal:
    """Keeps everything in a list, in the order in which it came."""

    def __init__(self, heard: list[Any], fail: str | None = None) -> None:
        self.heard = heard
        self.fail = fail
        self.stories: list[Any] = []

    async def called(self, exec: Any) -> None:
        if self.fail == "called":
            raise OSError("the disk is full")
        await trio.lowlevel.checkpoint()
        self.heard.append(("called", exec.name))

    async def finished(self, exec: Any, result: Any, story: Any) -> None:
        if self.fail == "finished":
            raise OSError("the disk is full")
        await trio.lowlevel.checkpoint()
        self.heard.append(("finished", result.is_error))
        self.stories.append(story)


async def called(host: Any, name: str = "echo", **arguments: Any) -> Any:
    call = ToolExecutionInput("c1", name, arguments, AbortController().signal, host.ctx.scope().key)
    return await host.ctx.tools.execute(call)


def prepared(host: Any, heard: list[Any], fail: str | None = None) -> Journal:
    @tool
    async def echo(text: str) -> str:
        """Say it again."""
        heard.append("body")
        return text

    host.ctx.tools.register(echo)
    host.ctx.on("tools/result", lambda exec, result: heard.append(("observed", result.is_error)))
    journal = Journal(heard, fail)
    host.ctx.tools.keep_record(journal)
    return journal


async def test_a_call_is_on_record_before_policy_and_its_result_before_observers() -> None:
    """The order is: called, policy, body, finished, observers."""
    heard: list[Any] = []
    async with open_host() as host:
        prepared(host, heard)
        host.ctx.on("tools/pre-execute", lambda exec, next: heard.append("policy") or next())
        result = await called(host, text="hi")
    assert result.value == "hi"
    assert heard == [("called", "echo"), "policy", "body", ("finished", False), ("observed", False)]


@pytest.mark.parametrize("name", ["echo", "nobody"])
async def test_a_journal_that_cannot_write_refuses_the_call(name: str) -> None:
    """Nothing runs off the record, and policy is not even asked."""
    heard: list[Any] = []
    async with open_host() as host:
        prepared(host, heard, fail="called")
        host.ctx.on("tools/pre-execute", lambda exec, next: heard.append("policy") or next())
        result = await called(host, name, text="hi")
    assert result.error.info.code == "LOG_UNAVAILABLE"
    assert "policy" not in heard
    assert "body" not in heard


async def test_a_result_that_cannot_be_recorded_is_withheld() -> None:
    """What is not on record is given to nobody, and observers hear what the caller hears."""
    heard: list[Any] = []
    async with open_host() as host:
        prepared(host, heard, fail="finished")
        result = await called(host, text="a secret")
    assert result.error.info.code == "LOG_UNAVAILABLE"
    assert "a secret" not in str(result)
    assert heard[-1] == ("observed", True)


async def test_a_cancelled_call_is_recorded_before_the_cancellation_goes_on() -> None:
    """The record of a call whose caller went away is complete."""
    heard: list[Any] = []
    async with open_host() as host:
        prepared(host, heard)

        @tool
        async def wait() -> None:
            """Wait for ever."""
            await trio.sleep_forever()

        host.ctx.tools.register(wait)
        with trio.move_on_after(0.01) as scope:
            await called(host, "wait")
    assert scope.cancelled_caught
    assert heard == [("called", "wait"), ("finished", True), ("observed", True)]


async def test_the_story_names_who_was_asked_in_order_and_what_each_said() -> None:
    """Every decision can be explained: stage, plugin, listener, answer."""
    heard: list[Any] = []

    def gate(ctx: Any) -> None:
        async def check(exec: Any, next: Any) -> Any:
            return await next()

        ctx.on("tools/pre-execute", check)
        ctx.tools.guard(lambda exec: None)

    gate.inject = ["tools"]  # type: ignore[attr-defined]
    async with open_host(plugins=[gate]) as host:
        journal = prepared(host, heard)
        host.ctx.on("tools/pre-execute", lambda exec, next: Allow())
        host.ctx.on("tools/execute", lambda exec, next: next())
        host.ctx.on("tools/post-execute", lambda exec, result, next: Block("not today"))
        await called(host, text="hi")
    told = [(step["stage"], step.get("plugin"), step["answer"]) for step in journal.stories[0]]
    assert told == [
        ("tools/pre-execute", "gate", "pass"),
        ("tools/pre-execute", "root", "allow"),
        ("guard", "gate", "pass"),
        ("tools/execute", "root", "pass"),
        ("body", "root", "success"),
        ("tools/post-execute", "root", "block"),
    ]
    assert journal.stories[0][-1]["detail"] == "not today"


async def test_the_story_tells_of_a_listener_that_raised() -> None:
    """A failure of policy is part of the story."""
    heard: list[Any] = []

    def broken(exec: Any, next: Any) -> Any:
        raise RuntimeError("boom")

    async with open_host() as host:
        journal = prepared(host, heard)
        host.ctx.on("tools/pre-execute", broken)
        await called(host, text="hi")
    assert [(step["answer"], step["detail"]) for step in journal.stories[0]] == [("raised", "boom")]


@pytest.mark.parametrize(("decision", "verdict"), [(Allow(), "allow"), (Ask("sure?"), "ask"), (Deny("no"), "refuse")])
async def test_policy_can_be_asked_beforehand_without_consequences(decision: Any, verdict: str) -> None:
    """A dry run asks listeners and guards with ``exec.dry_run`` set: no person, no body, no record, no observer."""
    heard: list[Any] = []
    dry: list[bool] = []
    async with open_host() as host:
        prepared(host, heard)
        host.ctx.on("tools/pre-execute", lambda exec, next: dry.append(exec.dry_run) or decision)
        call = ToolExecutionInput("c1", "echo", {"text": "x"}, AbortController().signal, host.ctx.scope().key)
        foreseen = await host.ctx.tools.foresee(call)
    assert (foreseen.verdict, dry, heard) == (verdict, [True], [])
    assert foreseen.story[0]["plugin"] == "root"


async def test_a_dry_run_of_an_unknown_tool_says_so() -> None:
    """What is not visible would be refused."""
    async with open_host() as host:
        call = ToolExecutionInput("c1", "nobody", {}, AbortController().signal)
        foreseen = await host.ctx.tools.foresee(call)
    assert foreseen.verdict == "refuse"
    assert foreseen.info.code == "UNKNOWN_TOOL"


async def test_the_story_tells_a_raiser_from_one_that_answers_rubbish() -> None:
    """Each of the two says what was wrong, and only of the listener that did it."""
    heard: list[Any] = []

    async def front(exec: Any, next: Any) -> Any:
        return await next()

    async with open_host() as host:
        journal = prepared(host, heard)
        host.ctx.on("tools/pre-execute", front)
        host.ctx.on("tools/pre-execute", lambda exec, next: 3)
        await called(host, text="hi")
    told = [(step["answer"], step["detail"]) for step in journal.stories[0]]
    assert told[0][0] == "raised"
    assert told[1] == ("rubbish", "int")


async def test_the_story_tells_each_listeners_own_time() -> None:
    """The time behind ``next()``, and of listeners that are heard after an answer, is theirs alone."""
    heard: list[Any] = []

    def slow() -> None:
        until = perf_counter() + 0.02
        while perf_counter() < until:
            pass

    async def waits(exec: Any, next: Any) -> Any:
        return await next()

    def late(exec: Any, next: Any) -> Any:
        slow()
        return Allow()

    async with open_host() as host:
        journal = prepared(host, heard)
        for listener in (waits, lambda exec, next: Allow(), late):
            host.ctx.on("tools/pre-execute", listener)
        await called(host, text="hi")
    first, second, third, _ = (step["ms"] for step in journal.stories[0])
    assert third >= 20 > first + second


def test_steps_that_began_at_once_are_told_from_the_outside_in() -> None:
    """A coarse clock does not turn a story around, nor make a time negative."""
    inner: Note = ("b", None, None, PASS, 1.0, 1.0)
    outer: Note = ("a", None, None, PASS, 1.0, 2.0)
    story = Story([inner, outer, ("c", None, None, PASS, 1.5, 3.0)])
    assert [(step["stage"], step["ms"]) for step in story] == [("a", 1000.0), ("b", 0.0), ("c", 1500.0)]
