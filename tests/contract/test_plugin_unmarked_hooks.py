"""A function that looks like a hook and is none would be policy that is silently absent."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from dsh_runtime import HookError, hookimpl, open_host


def module(**members: Any) -> ModuleType:
    """A plugin module with these members."""
    made = ModuleType("made_plugin")
    made.__dict__.update(members, apply=lambda ctx: None)
    return made


async def tools_pre_execute(exec: Any, next: Any) -> Any:
    """Deny nothing."""
    return await next()


async def test_a_function_with_a_hooks_name_and_no_marker_is_refused() -> None:
    """The message says how to mend it."""
    async with open_host() as host:
        fiber = host.ctx.plugin(module(tools_pre_execute=tools_pre_execute))
        with pytest.raises(HookError, match="put @hookimpl above it"):
            await fiber.wait()


async def test_a_marked_function_and_an_imported_specification_are_fine() -> None:
    """Only what would be forgotten is refused."""
    from dsh_hookspecs.specs import tools_result

    marked = hookimpl(lambda exec, next: next())  # noqa: A006
    async with open_host() as host:
        fiber = host.ctx.plugin(module(tools_pre_execute=marked, tools_result=tools_result))
        await fiber.wait()
        assert fiber.state == "active"


async def test_mode_code_where_code_mode_is_off_stops_the_start() -> None:
    """A host that would show no tool at all says so instead."""
    from dsh_runtime import HostError

    with pytest.raises(HostError, match="run_code"):
        async with open_host({"host": {"presentation": "code", "code": {"enabled": False}}}):
            pass


async def test_a_policy_bug_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever runs the host finds the line that raised."""
    from dsh_runtime import AbortController, ToolExecutionInput

    def broken(exec: Any, next: Any) -> Any:
        return {}["amount"]

    async with open_host() as host:
        host.ctx.on("tools/pre-execute", broken)
        result = await host.ctx.tools.execute(ToolExecutionInput("c", "x", {}, AbortController().signal))
    assert result.error.info.code == "LISTENER_FAILED"
    assert 'return {}["amount"]' in caplog.text


async def test_an_agent_that_can_be_no_key_is_answered() -> None:
    """Not raised, and not taken for a closed scope."""
    from dsh_runtime import AbortController, ToolExecutionInput

    async with open_host() as host:
        result = await host.ctx.tools.execute(ToolExecutionInput("c", "x", {}, AbortController().signal, agent=[]))
    assert result.error.info.code == "INVALID_ARGS"
    assert "agent" in result.error.message
