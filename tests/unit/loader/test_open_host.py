"""What ``open_host`` says to a program that uses it in a way that cannot work."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime import AbortController, ToolExecutionInput, open_host, tool
from dsh_runtime.loader.host import HostError


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


class Kit:
    """One tool."""

    name = "kit"
    inject = ("tools",)

    def apply(self, ctx: Any) -> None:
        """Register it."""
        ctx.tools.register(echo)


async def _opened() -> None:
    async with open_host():
        pytest.fail("it has opened")


def test_outside_trio_it_says_how_to_run_it() -> None:
    with pytest.raises(RuntimeError, match=r"^open_host needs trio: run it with trio\.run") as caught:
        asyncio.run(_opened())
    assert caught.value.__suppress_context__


async def test_a_tool_is_no_plugin() -> None:
    with pytest.raises(HostError, match="'echo' is a tool, not a plugin; register it in apply"):
        async with open_host(plugins=[echo]):
            pytest.fail("it has opened")


async def test_a_call_after_the_end_says_that_the_host_is_closed() -> None:
    async with open_host(plugins=[Kit()]) as host:
        tools = host.ctx.tools
    result = await tools.execute(ToolExecutionInput("c1", "echo", {"text": "a"}, AbortController().signal))
    assert (result.error.info.code, "the host is closed" in result.error.message) == ("UNKNOWN_TOOL", True)
    with pytest.raises(AttributeError, match="the host is closed"):
        _ = host.ctx.tools


async def test_the_repr_of_what_is_no_plugin_is_bounded() -> None:
    with pytest.raises(Exception, match="is no plugin") as caught:
        async with open_host(plugins=["x" * 100_000]):
            pytest.fail("it has opened")
    assert len(str(caught.value)) < 1_000


@pytest.mark.parametrize("made", ["Bag", "Bag()"])
async def test_a_service_that_takes_no_config_can_stand_in_a_config(tmp_path: Path, made: str) -> None:
    (tmp_path / "bag.py").write_text(
        f'from dsh_runtime import Service\nclass Bag(Service):\n    name = "bag"\nmade = {made}\n'
    )
    row = {"id": "bag", "use": f"{tmp_path}/bag.py:made"}
    async with open_host({"plugin": [row]}) as host:
        assert host.ctx.get("bag") is not None
    with pytest.raises(HostError, match="plugin 'bag' takes no config, and was given 'size'; remove it"):
        async with open_host({"plugin": [{**row, "config": {"size": 3}}]}):
            pytest.fail("it has opened")
