"""The cancel scope of a body: entered late, it behaves as one that was entered first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
from dsh_hookspecs import ToolExecutionSuccess

from dsh_runtime import AbortController, ToolExecutionInput, define_tool, open_host
from dsh_runtime.tools import dispatch, scope
from dsh_runtime.tools.results import make_success


@pytest.fixture(params=["late", "first"], autouse=True)
def runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test holds for both ways."""
    monkeypatch.setattr(dispatch, "run_body", scope.run_late if request.param == "late" else scope.run_scoped)


class Caller:
    """Calls one body in a host of its own."""

    def __init__(self, execute: Callable[..., Any]) -> None:
        self.controller = AbortController()
        self._tool = define_tool(name="t", description="d", parameters={}, output={"type": "json"}, execute=execute)

    async def call(self) -> Any:
        async with open_host() as host:
            host.ctx.tools.register(self._tool)
            before = chain_end()
            result = await host.ctx.tools.execute(ToolExecutionInput("1", "t", {}, self.controller.signal))
            assert chain_end() is before, "the caller's scopes are as they were"
            await trio.lowlevel.checkpoint()
            return result


def chain_end() -> Any:
    task: Any = trio.lowlevel.current_task()
    return task._cancel_status


def test_this_trio_keeps_its_chain_as_the_late_scope_knows_it() -> None:
    assert scope.run_body is scope.run_late


async def test_a_body_that_never_waits() -> None:
    async def body(args: Any, exec: Any) -> str:
        return "done"

    assert (await Caller(body).call()).value == "done"


async def test_a_deadline_that_the_body_sets_before_it_first_waits(autojump_clock: Any) -> None:
    async def body(args: Any, exec: Any) -> str:
        with trio.move_on_after(1):
            await trio.sleep(2)
        await trio.sleep(5)
        return "done"

    assert (await Caller(body).call()).value == "done"


async def test_a_body_that_cancels_its_own_scope_before_it_first_waits() -> None:
    async def body(args: Any, exec: Any) -> str:
        with trio.CancelScope() as inner:
            inner.cancel()
            await trio.lowlevel.checkpoint()
        assert inner.cancelled_caught
        await trio.lowlevel.checkpoint()
        return "done"

    assert (await Caller(body).call()).value == "done"


async def test_an_abort_reaches_through_scopes_and_nurseries_that_were_opened_first() -> None:
    cancelled = []

    async def child() -> None:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.append("child")

    async def body(args: Any, exec: Any) -> None:
        with trio.CancelScope():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)
                nursery.start_soon(child)
                await trio.lowlevel.checkpoint()
                caller.controller.abort("enough")
                await trio.sleep_forever()

    caller = Caller(body)
    result = await caller.call()
    assert result.error.info.code == "ABORTED"
    assert cancelled == ["child", "child"]


async def test_a_shield_that_the_body_raises_before_it_first_waits(autojump_clock: Any) -> None:
    steps = []

    async def body(args: Any, exec: Any) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
            caller.controller.abort()
            await trio.sleep(1)
            steps.append("shielded")
        await trio.sleep(1)
        steps.append("too far")

    caller = Caller(body)
    assert (await caller.call()).error.info.code == "ABORTED"
    assert steps == ["shielded"]


@pytest.mark.parametrize("waits", [False, True])
async def test_a_body_that_leaves_a_scope_open_fails_and_harms_nobody(waits: bool) -> None:
    async def body(args: Any, exec: Any) -> str:
        trio.CancelScope().__enter__()
        if waits:
            await trio.lowlevel.checkpoint()
        return "done"

    result = await Caller(body).call()
    assert "Cancel scope stack corrupted" in result.error.message


async def test_a_body_that_raises_with_a_scope_left_open_fails_and_harms_nobody() -> None:
    async def body(args: Any, exec: Any) -> str:
        trio.CancelScope().__enter__()
        raise ValueError("first")

    result = await Caller(body).call()
    assert "Cancel scope stack corrupted" in result.error.message


async def test_a_callers_cancellation_reaches_a_body_within_its_own_scopes() -> None:
    seen = []

    async def body(args: Any, exec: Any) -> None:
        with trio.CancelScope():
            try:
                await trio.sleep_forever()
            finally:
                seen.append(exec.signal.aborted)

    async def cancelled() -> None:
        with trio.CancelScope() as outer:
            async with open_host() as host:
                tool = define_tool(name="t", description="d", parameters={}, output={"type": "json"}, execute=body)
                host.ctx.tools.register(tool)
                trio.lowlevel.spawn_system_task(cancel_when_blocked, outer)
                await host.ctx.tools.execute(ToolExecutionInput("1", "t", {}, AbortController().signal))
        assert outer.cancelled_caught

    async def cancel_when_blocked(outer: trio.CancelScope) -> None:
        await trio.testing.wait_all_tasks_blocked()
        outer.cancel()

    await cancelled()
    assert seen == [True]


def test_a_success_that_the_host_makes_is_like_any_other() -> None:
    made = make_success("v", [], {"m": 1}, (), True)
    assert type(made) is ToolExecutionSuccess
    assert attrs.asdict(made) == attrs.asdict(ToolExecutionSuccess("v", [], {"m": 1}, (), True))
    assert [field.name for field in attrs.fields(ToolExecutionSuccess)] == list(attrs.asdict(made))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.value = 1  # type: ignore[misc]
