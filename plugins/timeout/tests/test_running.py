"""The one timer behind all deadlines: it serves every call, and goes when the plugin goes."""

from __future__ import annotations

from typing import Any

import dsh_plugin_timeout
import pytest
import trio
from dsh_hookspecs import AbortController
from trio.testing import MockClock, wait_all_tasks_blocked

from dsh_runtime import ToolExecutionInput, define_tool, open_host


async def sleep(args: Any) -> str:
    await trio.sleep(args["seconds"])
    return "done"


def sleeper(timeout: float) -> Any:
    seconds = {"type": "number", "required": True}
    return define_tool(
        name=f"sleep_{timeout:g}",
        description="Sleeps.",
        parameters={"seconds": seconds},
        output={"type": "string"},
        execute=sleep,
        timeout=timeout,
    )


async def call(ctx: Any, timeout: float, seconds: float) -> bool:
    """Whether a call under a deadline came to its end."""
    signal = AbortController().signal
    result = await ctx.tools.execute(ToolExecutionInput("c", f"sleep_{timeout:g}", {"seconds": seconds}, signal))
    return not result.is_error


def tasks() -> int:
    return trio.lowlevel.current_statistics().tasks_living


@pytest.mark.trio
async def test_calls_that_overlap_each_have_their_own_deadline(autojump_clock: MockClock) -> None:
    ends: dict[float, float] = {}

    async def run(ctx: Any, timeout: float) -> None:
        assert not await call(ctx, timeout, 1000)
        ends[timeout] = trio.current_time()

    async with open_host(plugins=[dsh_plugin_timeout]) as host, trio.open_nursery() as nursery:
        for timeout in (5, 2, 9, 3):
            host.ctx.tools.register(sleeper(timeout))
            nursery.start_soon(run, host.ctx, timeout)
    assert ends == pytest.approx({5: 5, 2: 2, 9: 9, 3: 3})


@pytest.mark.trio
async def test_a_later_call_is_stopped_by_a_timer_that_an_earlier_one_set(autojump_clock: MockClock) -> None:
    async with open_host(plugins=[dsh_plugin_timeout]) as host:
        host.ctx.tools.register(sleeper(5))
        assert await call(host.ctx, 5, 1)
        assert not await call(host.ctx, 5, 100)
        assert trio.current_time() == pytest.approx(6)


@pytest.mark.trio
async def test_any_number_of_calls_leaves_one_timer_and_an_unloaded_plugin_none(autojump_clock: MockClock) -> None:
    before = tasks()
    async with open_host(plugins=[dsh_plugin_timeout]) as host:
        host.ctx.tools.register(sleeper(5))
        idle = tasks()
        for _ in range(50):
            assert await call(host.ctx, 5, 0)
        assert tasks() <= idle + 1
    await wait_all_tasks_blocked()
    assert tasks() == before


@pytest.mark.trio
async def test_a_call_keeps_its_deadline_when_the_plugin_is_unloaded_meanwhile(autojump_clock: MockClock) -> None:
    async with open_host() as host:
        host.ctx.tools.register(sleeper(5))
        fiber = host.ctx.plugin(dsh_plugin_timeout)
        await fiber.wait()

        async def unload() -> None:
            await trio.sleep(1)
            fiber.dispose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(unload)
            assert not await call(host.ctx, 5, 100)
        assert trio.current_time() == pytest.approx(5)
