"""Limits in a host, on virtual time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from attrs import field, frozen
from dsh_hookspecs import AbortController, AbortSignal, Allow, Deny, ExecutionToken, PreToolDecision, ToolExecution
from trio.testing import MockClock

from dsh_runtime import HostError, ToolExecutionInput, define_tool, open_host

Next = Callable[[], Awaitable[PreToolDecision]]


class Host:
    """A host with limits and a few tools that count how often they ran."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        self.ran: list[str] = []
        for name in ("web_fetch", "web_search", "fs_read"):
            ctx.tools.register(self._tool(name))

    def _tool(self, name: str) -> Any:
        async def execute(args: Any, exec: Any) -> str:
            self.ran.append(name)
            return name

        output: Any = {"type": "string"}
        return define_tool(name=name, description=name, parameters={}, output=output, execute=execute)

    async def call(self, name: str = "web_fetch", agent: Any = None) -> Any:
        call = ToolExecutionInput("c1", name, {}, AbortController().signal, agent=agent)
        return await self.ctx.tools.execute(call)

    async def allowed(self, times: int, name: str = "web_fetch", agent: Any = None) -> int:
        """How many of a number of calls, made at once, are allowed."""
        results = [await self.call(name, agent) for _ in range(times)]
        return sum(not result.is_error for result in results)


@asynccontextmanager
async def limited(*rules: Any, **config: Any) -> AsyncIterator[Host]:
    row = {"id": "limits", "use": "rate-limit", "config": {"rules": list(rules), **config}}
    async with open_host({"plugin": [row]}) as host:
        yield Host(host.ctx)


def rule(*tools: str, calls: int = 2, seconds: float = 10, **more: Any) -> dict[str, Any]:
    return {"tools": list(tools or ["web_*"]), "calls": calls, "seconds": seconds, **more}


def retry_after(result: Any) -> float:
    found = re.search(r"\(retry_after=([0-9.]+)\)", result.error.message)
    assert found is not None
    return float(found[1])


@pytest.mark.trio
async def test_calls_beyond_the_limit_are_denied_and_never_run(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=2)) as host:
        assert await host.allowed(5) == 2
        assert host.ran == ["web_fetch"] * 2


@pytest.mark.trio
async def test_a_denial_names_rule_and_tool_and_says_when_to_try_again(autojump_clock: MockClock) -> None:
    async with limited(rule("fs_*"), rule("web_*", calls=2, seconds=10)) as host:
        await host.allowed(2)
        result = await host.call()
    assert result.error.info.code == "DENIED"
    assert result.error.info.plugin == "limits"
    assert result.error.message == (
        "Tool 'web_fetch' is called too often: rate limit rule 2 (web_*) allows 2 calls in 10 s per tool and agent, "
        "and they are used up. Try again in 5 s (retry_after=5)."
    )


@pytest.mark.trio
async def test_whoever_waits_as_long_as_the_denial_says_is_allowed(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=3, seconds=7)) as host:
        await host.allowed(3)
        for _ in range(20):
            await trio.sleep(retry_after(await host.call()))
            assert await host.allowed(1) == 1


@pytest.mark.trio
async def test_tokens_come_back_evenly_up_to_the_burst(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=10, seconds=10, burst=3)) as host:
        assert await host.allowed(9) == 3
        await trio.sleep(2)
        assert await host.allowed(9) == 2
        await trio.sleep(1000)
        assert await host.allowed(9) == 3


@pytest.mark.trio
async def test_each_tool_and_agent_has_its_own_count(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=2)) as host:
        for name in ("web_fetch", "web_search"):
            for agent in ("ada", "bob", None):
                assert await host.allowed(3, name, agent) == 2


@pytest.mark.trio
async def test_a_host_wide_rule_counts_all_agents_together(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=3, per="host")) as host:
        assert await host.allowed(2, agent="ada") == 2
        assert await host.allowed(2, agent="bob") == 1
        assert await host.allowed(1, "web_search", agent="bob") == 1


@pytest.mark.trio
async def test_tools_together_share_one_count(autojump_clock: MockClock) -> None:
    async with limited(rule("web_fetch", "web_search", calls=3, together=True)) as host:
        assert await host.allowed(2, "web_fetch") == 2
        assert await host.allowed(2, "web_search") == 1


@pytest.mark.trio
async def test_a_tool_that_no_rule_fits_is_not_limited(autojump_clock: MockClock) -> None:
    async with limited(rule("web_*", calls=1)) as host:
        assert await host.allowed(50, "fs_read") == 50


@pytest.mark.trio
async def test_a_call_keeps_every_rule_and_a_denied_one_takes_from_none(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=1, seconds=1), rule(calls=3, seconds=1000, per="host")) as host:
        assert await host.allowed(10) == 1
        await trio.sleep(1)
        assert await host.allowed(10) == 1
        await trio.sleep(1)
        assert await host.allowed(10) == 1
        await trio.sleep(1)
        assert retry_after(await host.call()) > 300


@pytest.mark.trio
async def test_names_of_no_tool_share_one_count(autojump_clock: MockClock) -> None:
    async with limited(rule("*", calls=3)) as host:
        codes = [(await host.call(f"made_up_{number}")).error.info.code for number in range(5)]
        assert codes == ["UNKNOWN_TOOL"] * 3 + ["DENIED"] * 2


@pytest.mark.trio
async def test_a_rule_without_a_free_counter_denies_until_one_is_full_again(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=1, seconds=10), max_counters=2) as host:
        assert await host.allowed(1, agent="ada") == 1
        await trio.sleep(4)
        assert await host.allowed(1, agent="bob") == 1
        result = await host.call(agent="eve")
        assert "no room for one more" in result.error.message
        assert retry_after(result) == 6
        await trio.sleep(6)
        assert await host.allowed(1, agent="eve") == 1


@pytest.mark.trio
async def test_policies_behind_are_still_heard(autojump_clock: MockClock) -> None:
    async with limited(rule()) as host:
        host.ctx.on("tools/pre-execute", lambda: Deny("not today"))
        assert (await host.call()).error.message == "not today"


@pytest.mark.trio
async def test_a_call_that_a_policy_in_front_denies_does_not_count(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=1)) as host:
        undo = host.ctx.on("tools/pre-execute", lambda: Deny("not today"), prepend=True)
        assert await host.allowed(5) == 0
        undo()
        assert await host.allowed(5) == 1


@pytest.mark.trio
async def test_a_scope_that_ends_meanwhile_is_what_the_call_is_refused_for(autojump_clock: MockClock) -> None:
    async with limited(rule()) as host:
        scope = host.ctx.scope("ada")

        async def slow(exec: ToolExecution, next: Next) -> PreToolDecision:
            await scope.dispose()
            return await next()

        host.ctx.on("tools/pre-execute", slow, prepend=True)
        assert (await host.call(agent="ada")).error.info.code == "SCOPE_CLOSED"


@frozen
class DryRun:
    """A call that policy is only asked about."""

    name: str = "web_fetch"
    dry_run: bool = True
    call_id: str = "c1"
    root_call_id: str = "c1"
    arguments: Any = field(factory=dict)
    signal: AbortSignal = field(factory=AbortSignal)
    agent: Any = None
    parent: ExecutionToken | None = None
    token: ExecutionToken = field(factory=ExecutionToken)
    digest: str = ""


@pytest.mark.trio
async def test_a_dry_run_is_told_what_would_happen_and_takes_nothing(autojump_clock: MockClock) -> None:
    async with limited(rule(calls=2)) as host:

        async def would() -> Any:
            return await host.ctx.waterfall("tools/pre-execute", DryRun(), default=Allow())

        assert [await would() for _ in range(5)] == [Allow()] * 5
        assert await host.allowed(5) == 2
        assert isinstance(await would(), Deny)


@pytest.mark.trio
@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ({"calls": 0}, "calls"),
        ({"seconds": 0}, "seconds"),
        ({"burst": 0}, "burst"),
        ({"per": "session"}, "'agent'"),
        ({"tools": []}, "write ['*']"),
    ],
)
async def test_a_rule_with_a_mistake_stops_the_start_and_is_named(mistake: dict[str, Any], named: str) -> None:
    with pytest.raises(HostError) as caught:
        async with limited({**rule(), **mistake}):
            pass  # pragma: no cover
    assert named in str(caught.value)
