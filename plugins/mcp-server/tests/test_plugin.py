"""The plugin as the host loads it."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import dsh_plugin_mcp_server
import pytest
import trio
from dsh_plugin_mcp_server import Config
from dsh_plugin_mcp_server._news import News

from dsh_runtime import ConfigError, open_host


def test_it_is_found_by_its_entry_point() -> None:
    """Under the name that a config uses."""
    (entry,) = entry_points(group="dsh.plugins", name="mcp-server")
    plugin = entry.load()
    assert plugin is dsh_plugin_mcp_server
    assert (plugin.name, plugin.inject, plugin.Config) == ("mcp-server", {"tools": True, "sessions": False}, Config)


def test_the_sdk_is_not_imported_before_a_client_is_served() -> None:
    """It takes half a second, and a host may never serve one."""
    script = "import sys, dsh_plugin_mcp_server; sys.exit('mcp' in sys.modules or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"max_result_bytes": 10}, "max_result_bytes"),
        ({"max_result_depth": 513}, "max_result_depth"),
        ({"max_message_bytes": "many"}, "max_message_bytes"),
        ({"max_concurrent_calls": 0}, "max_concurrent_calls"),
        ({"name": ""}, "name"),
        ({"colour": "blue"}, "colour"),
    ],
)
async def test_a_config_that_makes_no_sense_is_refused(config: dict[str, Any], part: str) -> None:
    """Before anything is served."""
    async with open_host() as host:
        fiber = host.ctx.plugin(dsh_plugin_mcp_server, config)
        with contextlib.suppress(ConfigError):
            await fiber.wait()
        assert part in str(fiber.error)
        assert host.ctx.get("mcp_server") is None


async def test_who_the_server_is_comes_from_the_config(serve: Any) -> None:
    """In both protocols."""
    async with serve(name="tools of mine", version="7", instructions="Use them well.") as served:
        for mode in ("auto", "legacy"):
            async with served.client(mode) as client:
                info = client.server_info
                assert (info.name, info.version) == ("tools of mine", "7")
                assert client.instructions == "Use them well."


async def test_nothing_is_left_when_the_clients_are_gone(serve: Any) -> None:
    """Neither a task nor a listener, which would keep its session alive."""
    async with serve() as served:
        await _visit(served)
        tasks = trio.lowlevel.current_statistics().tasks_living
        for _ in range(20):
            await _visit(served)
        gc.collect()
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert [each for each in gc.get_objects() if isinstance(each, News)] == []


async def _visit(served: Any) -> None:
    async with served.link():
        pass
