"""Reminders in a host."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from attrs import evolve, field, frozen
from dsh_hookspecs import (
    AbortController,
    Accept,
    Block,
    ContextMessage,
    Deny,
    ExecutionToken,
    PostToolDecision,
    ToolExecution,
    ToolExecutionResult,
    ToolExecutionSuccess,
)

from dsh_runtime import HostError, ScopeKey, ToolExecutionInput, define_tool, open_host

Next = Callable[[], Awaitable[PostToolDecision]]
SOURCE = "repeat-reminder"


def see(args: Any, exec: Any) -> str:
    return "seen"


class Host:
    """A host with the reminder and a few tools."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        for name in ("look", "other", "wait_for"):
            self.add(name, see)

    def add(self, name: str, answer: Callable[[Any, Any], Any]) -> None:
        async def execute(args: Any, exec: Any) -> Any:
            outcome = answer(args, exec)
            return await outcome if isinstance(outcome, Awaitable) else outcome

        parameters: Any = {"at": {"type": "string"}, "depth": {"type": "integer"}}
        output: Any = {"type": "string"}
        tool: Any = define_tool(name=name, description=name, parameters=parameters, output=output, execute=execute)
        self.ctx.tools.register(tool)

    async def call(self, name: str = "look", agent: Any = "ada", parent: Any = None, **arguments: Any) -> Any:
        signal = AbortController().signal
        call = ToolExecutionInput("c1", name, arguments, signal, agent=agent, parent=parent)
        return await self.ctx.tools.execute(call)

    async def reminded(self, times: int, name: str = "look", agent: Any = "ada", **arguments: Any) -> list[int]:
        """At which of a number of calls there was a reminder, counted from 1."""
        results = [await self.call(name, agent, **arguments) for _ in range(times)]
        return [number for number, result in enumerate(results, start=1) if reminders(result)]


@asynccontextmanager
async def reminding(**config: Any) -> AsyncIterator[Host]:
    async with open_host({"plugin": [{"id": "reminder", "use": "repeat-reminder", "config": config}]}) as host:
        yield Host(host.ctx)


def reminders(result: ToolExecutionResult) -> list[ContextMessage]:
    return [message for message in result.additional_contexts if message.source == SOURCE]


@pytest.mark.trio
async def test_identical_calls_in_a_row_are_remarked_on_at_the_configured_counts() -> None:
    async with reminding() as host:
        assert await host.reminded(12, at="door") == [3, 5, 8]


@pytest.mark.trio
async def test_the_reminder_names_tool_and_count_and_gives_an_advice() -> None:
    async with reminding(counts=[2], advice="Ask somebody.") as host:
        await host.call()
        [message] = reminders(await host.call())
    assert message.content == [
        {"type": "text", "text": "Tool 'look' has been called 2 times in a row with the same arguments. Ask somebody."}
    ]
    assert message.meta == {"tool": "look", "count": 2}


@pytest.mark.trio
async def test_the_result_itself_stays_as_it_is() -> None:
    async with reminding(counts=[2]) as host:
        first, second = await host.call(), await host.call()
    assert evolve(second, additional_contexts=()) == first


@pytest.mark.trio
async def test_another_call_starts_the_row_again() -> None:
    async with reminding() as host:
        assert await host.reminded(2) == []
        await host.call("other")
        assert await host.reminded(3) == [3]


@pytest.mark.trio
async def test_other_arguments_make_another_call_and_their_order_does_not() -> None:
    async with reminding(counts=[2]) as host:
        await host.call(at="door", depth=1)
        assert not reminders(await host.call(at="door", depth=2))
        assert reminders(await host.call(depth=2, at="door"))


@pytest.mark.trio
async def test_each_agent_has_a_row_of_its_own() -> None:
    async with reminding() as host:
        for _ in range(2):
            assert await host.reminded(1, agent="ada") == []
            assert await host.reminded(1, agent="bob") == []
        assert await host.reminded(1, agent="ada") == [1]


@pytest.mark.trio
async def test_calls_of_another_agent_do_not_interrupt_a_row() -> None:
    async with reminding() as host:
        await host.reminded(2, agent="ada")
        await host.call("other", agent="bob")
        assert await host.reminded(1, agent="ada") == [1]


@pytest.mark.trio
async def test_calls_without_an_agent_count_together() -> None:
    async with reminding() as host:
        assert await host.reminded(3, agent=None) == [3]


@pytest.mark.trio
async def test_nested_calls_neither_count_nor_interrupt() -> None:
    async with reminding(counts=[2]) as host:
        nested: list[Any] = []

        async def outer(args: Any, exec: Any) -> str:
            nested.extend([await host.call("look", exec.agent, exec.token) for _ in range(5)])
            return "done"

        host.add("outer", outer)
        assert await host.reminded(2, "outer") == [2]
        assert [reminders(result) for result in nested] == [[]] * 10


@pytest.mark.trio
async def test_ignored_tools_neither_count_nor_interrupt() -> None:
    async with reminding(ignore=["wait_*"]) as host:
        assert await host.reminded(9, "wait_for") == []
        await host.reminded(2)
        await host.call("wait_for")
        assert await host.reminded(1) == [1]


@pytest.mark.trio
async def test_failed_and_denied_calls_count_too() -> None:
    def fail(args: Any, exec: Any) -> str:
        raise OSError("gone")

    async with reminding() as host:
        host.add("fail", fail)
        assert await host.reminded(3, "fail") == [3]
        host.ctx.on("tools/pre-execute", lambda: Deny("not today"))
        assert await host.reminded(3, "other") == [3]


@pytest.mark.trio
async def test_what_policies_behind_decide_stands_and_their_contexts_come_first() -> None:
    theirs = ContextMessage([{"type": "text", "text": "theirs"}], "theirs")

    def block() -> Block:
        return Block("withdrawn", additional_contexts=[theirs])

    async with reminding(counts=[2]) as host:
        host.ctx.on("tools/post-execute", block)
        await host.call()
        result = await host.call()
    assert result.error.info.code == "BLOCKED"
    assert [message.source for message in result.additional_contexts] == ["theirs", SOURCE]


@pytest.mark.trio
async def test_a_policy_in_front_that_hears_the_chain_twice_counts_a_call_once() -> None:
    async def twice(exec: ToolExecution, result: ToolExecutionResult, next: Next) -> PostToolDecision:
        await next()
        return await next()

    async with reminding() as host:
        host.ctx.on("tools/post-execute", twice, prepend=True)
        assert await host.reminded(6) == [3, 5]


@pytest.mark.trio
async def test_an_unasked_policy_in_front_leaves_the_reminder_in() -> None:
    async with reminding() as host:
        host.ctx.on("tools/post-execute", lambda: Accept(), prepend=True)
        assert await host.reminded(3) == [3]


@pytest.mark.trio
async def test_calls_of_a_batch_count_in_its_order() -> None:
    async with reminding() as host:
        signal = AbortController().signal
        calls = [ToolExecutionInput(f"c{n}", "look", {}, signal, agent="ada") for n in range(4)]
        results = await host.ctx.tools.execute_batch(calls)
    assert [bool(reminders(result)) for result in results] == [False, False, True, False]


@pytest.mark.trio
async def test_an_agents_key_is_not_kept_alive() -> None:
    async with reminding() as host:
        key = ScopeKey("session")
        ref = weakref.ref(key)
        scope = host.ctx.scope(key)
        await host.reminded(3, agent=key)
        await scope.dispose()
        del scope, key
        gc.collect()
        assert ref() is None


@frozen
class DryRun:
    """A call that policy is only asked about."""

    name: str = "look"
    dry_run: bool = True
    agent: Any = "ada"
    digest: str = "d"
    parent: ExecutionToken | None = None
    token: ExecutionToken = field(factory=ExecutionToken)


@pytest.mark.trio
async def test_a_dry_run_is_not_counted() -> None:
    async with reminding() as host:
        result = ToolExecutionSuccess("seen", [])
        for _ in range(3):
            decision = await host.ctx.waterfall("tools/post-execute", DryRun(), result, default=Accept())
            assert decision == Accept()


@pytest.mark.trio
@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"counts": []}, "write [3, 5, 8]"),
        ({"counts": [1, 2]}, "from 2 on"),
        ({"counts": [5, 3]}, "that grow"),
        ({"advice": " "}, "'advice' is empty"),
        ({"count": [3]}, "count"),
    ],
)
async def test_a_config_with_a_mistake_stops_the_start_and_is_named(config: dict[str, Any], named: str) -> None:
    with pytest.raises(HostError) as caught:
        async with reminding(**config):
            pass  # pragma: no cover
    assert named in str(caught.value)
