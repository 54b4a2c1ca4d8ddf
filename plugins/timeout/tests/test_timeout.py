"""Deadlines in a host, on virtual time."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from dsh_hookspecs import (
    AbortController,
    ApprovalOutcome,
    ApprovalRequest,
    Ask,
    ContextMessage,
    HarnessError,
    PreToolDecision,
    ToolExecution,
    ToolExecutionFailure,
    ToolExecutionSuccess,
)
from trio.testing import MockClock

from dsh_runtime import HostError, ToolExecutionInput, define_tool, open_host

Body = Callable[[Any, Any], Any]


class Host:
    """A host with the timeout plugin; its tools are made from their bodies."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx

    def add(self, execute: Body, *, timeout: float | None = None, name: str = "work") -> None:
        tool: Any = define_tool(
            name=name, description=name, parameters={}, output={"type": "string"}, execute=execute, timeout=timeout
        )
        self.ctx.tools.register(tool)

    async def call(self, name: str = "work", signal: Any = None, agent: Any = None) -> Any:
        signal = signal or AbortController().signal
        return await self.ctx.tools.execute(ToolExecutionInput("c1", name, {}, signal, agent=agent))


@asynccontextmanager
async def limited(config: Mapping[str, Any] | None = None) -> AsyncIterator[Host]:
    row = {"id": "limits", "use": "timeout", "config": dict(config or {})}
    async with open_host({"plugin": [row]}) as host:
        yield Host(host.ctx)


def code(result: Any) -> str | None:
    assert isinstance(result, ToolExecutionFailure)
    assert result.error.info is not None
    return result.error.info.code


def sleeping(seconds: float) -> Body:
    async def execute(args: Any, exec: Any) -> str:
        await trio.sleep(seconds)
        return "done"

    return execute


def stubborn(seconds: float) -> Body:
    async def execute(args: Any, exec: Any) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)
        return "done"

    return execute


@pytest.mark.trio
async def test_a_body_that_finishes_in_time_is_unaffected(autojump_clock: MockClock) -> None:
    async with limited() as host:
        host.add(sleeping(1.9), timeout=2)
        result = await host.call()
    assert isinstance(result, ToolExecutionSuccess)
    assert result.value == "done"
    assert trio.current_time() == pytest.approx(1.9)


@pytest.mark.trio
async def test_a_body_that_takes_longer_is_stopped_at_its_deadline(autojump_clock: MockClock) -> None:
    async with limited() as host:
        host.add(sleeping(60), timeout=2)
        result = await host.call()
    assert code(result) == "TOOL_TIMEOUT"
    assert result.error.message == (
        "Tool 'work' ran into its deadline of 2 s and was told to stop."
        " Its body came to rest after 2 s; what it did until then may stand."
    )
    assert result.content == [{"type": "text", "text": f"Error: {result.error.message}"}]
    assert trio.current_time() == pytest.approx(2)


@pytest.mark.trio
async def test_the_plugin_is_named_as_the_one_that_decided(autojump_clock: MockClock) -> None:
    async with limited() as host:
        host.add(sleeping(60), timeout=2)
        assert (await host.call()).error.info.plugin == "limits"


@pytest.mark.trio
async def test_a_body_that_ignores_its_signal_is_waited_for_and_then_timed_out(autojump_clock: MockClock) -> None:
    async with limited() as host:
        host.add(stubborn(7.5), timeout=2)
        result = await host.call()
    assert code(result) == "TOOL_TIMEOUT"
    assert "came to rest after 7.5 s" in result.error.message
    assert trio.current_time() == pytest.approx(7.5)


@pytest.mark.trio
async def test_an_error_that_a_body_ends_with_too_late_is_told(autojump_clock: MockClock) -> None:
    async def execute(args: Any, exec: Any) -> str:
        try:
            await trio.sleep(60)
        except trio.Cancelled:
            raise HarnessError("half of the rows are written", code="PARTIAL") from None
        return "done"

    async with limited() as host:
        host.add(execute, timeout=2)
        result = await host.call()
    assert code(result) == "TOOL_TIMEOUT"
    assert "half of the rows are written" in result.error.message


@pytest.mark.trio
async def test_contexts_that_a_body_deferred_before_its_deadline_are_kept(autojump_clock: MockClock) -> None:
    message = ContextMessage([{"type": "text", "text": "so far"}], "work")

    async def execute(args: Any, exec: Any) -> str:
        exec.defer_context(message)
        await trio.sleep(60)
        return "done"

    async with limited() as host:
        host.add(execute, timeout=2)
        assert list((await host.call()).additional_contexts) == [message]


@pytest.mark.trio
async def test_a_threaded_body_sees_the_deadline_on_its_signal(autojump_clock: MockClock) -> None:
    def execute(args: Any, exec: Any) -> str:
        told = threading.Event()
        undo = exec.signal.add_callback(told.set)
        stopped = told.wait(10)
        undo()
        return f"{stopped} {type(exec.signal.reason).__name__}"

    async with limited() as host:
        host.add(execute, timeout=2)
        result = await host.call()
    assert code(result) == "TOOL_TIMEOUT"
    assert trio.current_time() == pytest.approx(2)


@pytest.mark.trio
async def test_a_callers_abort_before_the_deadline_is_an_abort(autojump_clock: MockClock) -> None:
    controller = AbortController()

    async with limited() as host, trio.open_nursery() as nursery:
        host.add(sleeping(60), timeout=2)

        async def abort() -> None:
            await trio.sleep(1)
            controller.abort("the person pressed stop")

        nursery.start_soon(abort)
        assert code(await host.call(signal=controller.signal)) == "ABORTED"
        assert trio.current_time() == pytest.approx(1)


@pytest.mark.trio
async def test_of_abort_and_deadline_the_first_counts(autojump_clock: MockClock) -> None:
    controller = AbortController()

    async with limited() as host, trio.open_nursery() as nursery:
        host.add(stubborn(5), timeout=2)
        host.add(stubborn(5), timeout=4, name="patient")

        async def abort() -> None:
            await trio.sleep(3)
            controller.abort()

        nursery.start_soon(abort)
        results: dict[str, Any] = {}

        async def call(name: str) -> None:
            results[name] = await host.call(name, controller.signal)

        async with trio.open_nursery() as calls:
            calls.start_soon(call, "work")
            calls.start_soon(call, "patient")
    assert code(results["work"]) == "TOOL_TIMEOUT"
    assert code(results["patient"]) == "ABORTED"


@pytest.mark.trio
async def test_a_caller_whose_scope_is_cancelled_is_cancelled(autojump_clock: MockClock) -> None:
    async with limited() as host:
        host.add(sleeping(60), timeout=2)
        with trio.move_on_after(1) as scope:
            await host.call()
    assert scope.cancelled_caught
    assert trio.current_time() == pytest.approx(1)


@pytest.mark.trio
async def test_a_retry_in_front_gives_each_attempt_a_fresh_deadline(autojump_clock: MockClock) -> None:
    attempts: list[float] = []

    async def execute(args: Any, exec: Any) -> str:
        attempts.append(trio.current_time())
        await trio.sleep(60 if len(attempts) < 3 else 1.5)
        return "done"

    async def retry(exec: Any, next: Callable[[], Any]) -> Any:
        result = await next()
        while result.is_error and code(result) == "TOOL_TIMEOUT":
            result = await next()
        return result

    async with limited() as host:
        host.ctx.on("tools/execute", retry, prepend=True)
        host.add(execute, timeout=2)
        result = await host.call()
    assert not result.is_error
    assert attempts == pytest.approx([0, 2, 4])
    assert trio.current_time() == pytest.approx(5.5)


@pytest.mark.trio
async def test_a_tool_without_a_deadline_runs_as_long_as_it_likes(autojump_clock: MockClock) -> None:
    async with limited() as host:
        host.add(sleeping(100_000))
        assert not (await host.call()).is_error


@pytest.mark.trio
async def test_the_default_is_for_tools_without_a_deadline_of_their_own(autojump_clock: MockClock) -> None:
    async with limited({"default": 3}) as host:
        host.add(sleeping(60))
        host.add(sleeping(60), timeout=5, name="own")
        assert code(await host.call()) == "TOOL_TIMEOUT"
        assert trio.current_time() == pytest.approx(3)
        assert code(await host.call("own")) == "TOOL_TIMEOUT"
        assert trio.current_time() == pytest.approx(8)


@pytest.mark.trio
async def test_an_override_counts_instead_of_the_tools_own_deadline(autojump_clock: MockClock) -> None:
    async with limited({"overrides": {"wo*": 1, "*": 9}}) as host:
        host.add(sleeping(60), timeout=5)
        assert code(await host.call()) == "TOOL_TIMEOUT"
    assert trio.current_time() == pytest.approx(1)


@pytest.mark.trio
async def test_an_unknown_tool_is_unknown_whatever_its_deadline() -> None:
    async with limited({"default": 3}) as host:
        assert code(await host.call("nothing")) == "UNKNOWN_TOOL"


@pytest.mark.trio
@pytest.mark.parametrize("config", [{"default": 0}, {"default": -1.0}, {"overrides": {"*": 0}}, {"defualt": 1}])
async def test_a_config_with_a_mistake_stops_the_start(config: dict[str, Any]) -> None:
    with pytest.raises(HostError):
        async with limited(config):
            pass  # pragma: no cover


@pytest.mark.trio
async def test_the_readmes_config_is_taken() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    config = tomllib.loads(readme.partition("```toml\n")[2].partition("```")[0])
    async with open_host(config):
        pass


def ask_slowly(ctx: Any, about: str) -> None:
    """Have a person asked about one tool, who takes a hundred seconds to say yes."""

    async def policy(exec: ToolExecution, next: Callable[[], Any]) -> PreToolDecision:
        decision: PreToolDecision = Ask() if exec.name == about else await next()
        return decision

    async def person(request: ApprovalRequest) -> ApprovalOutcome:
        await trio.sleep(100)
        return "allowed-once"

    ctx.on("tools/pre-execute", policy)
    ctx.on("approval/request", person)


def nesting(ctx: Any, name: str, *, before: float = 0, after: float = 0) -> Body:
    """A body that calls another tool, with work of its own before and after."""

    async def execute(args: Any, exec: Any) -> str:
        await trio.sleep(before)
        inner = ToolExecutionInput("inner", name, {}, exec.signal, agent=exec.agent, parent=exec.token)
        await ctx.tools.execute(inner)
        await trio.sleep(after)
        return "done"

    return execute


@pytest.mark.trio
@pytest.mark.parametrize(("after", "expected"), [(1.5, None), (2.5, "TOOL_TIMEOUT")])
async def test_a_person_who_is_asked_about_a_nested_call_holds_every_deadline_around_it(
    autojump_clock: MockClock, after: float, expected: str | None
) -> None:
    async with limited() as host:
        ask_slowly(host.ctx, about="inner")
        host.add(nesting(host.ctx, "middle", before=1, after=after), timeout=3)
        host.add(nesting(host.ctx, "inner"), name="middle")
        host.add(sleeping(0), timeout=1, name="inner")
        result = await host.call(agent="ada")
        assert (code(result) if result.is_error else None) == expected
        assert trio.current_time() == pytest.approx(101 + min(after, 2))


@pytest.mark.trio
async def test_a_person_who_is_asked_holds_no_other_deadline(autojump_clock: MockClock) -> None:
    async with limited() as host, trio.open_nursery() as nursery:
        ask_slowly(host.ctx, about="inner")
        host.add(nesting(host.ctx, "inner"), timeout=3, name="asker")
        host.add(sleeping(0), name="inner")
        host.add(sleeping(60), timeout=2)

        async def ask() -> None:
            assert not (await host.call("asker", agent="ada")).is_error

        nursery.start_soon(ask)
        assert code(await host.call()) == "TOOL_TIMEOUT"
        assert trio.current_time() == pytest.approx(2)


@pytest.mark.trio
async def test_a_body_that_keeps_the_loop_busy_past_its_deadline_is_timed_out_too(mock_clock: MockClock) -> None:
    async def execute(args: Any, exec: Any) -> str:
        mock_clock.jump(5)
        return "done"

    async with limited() as host:
        host.add(execute, timeout=2)
        result = await host.call()
    assert code(result) == "TOOL_TIMEOUT"
    assert "after 5 s, its work done" in result.error.message
