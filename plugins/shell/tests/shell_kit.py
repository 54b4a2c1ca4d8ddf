"""Hosts with the tool, and looks at which processes there are."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dsh_plugin_shell
from dsh_plugin_shell import Config

from dsh_runtime import AbortController, ToolExecutionInput, open_host


class Shell:
    """Hosts with the tool in a folder, whose processes can be told from all others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = secrets.token_hex(8)

    @asynccontextmanager
    async def host(self, *, plugins: tuple[Any, ...] = (), **config: Any) -> AsyncIterator[Any]:
        """A host with the tool, and perhaps other plugins behind it."""
        env = {"TEST_MARK": self.mark, **config.pop("env", {})}
        async with open_host() as host:
            for plugin, its_config in plugins:
                await host.ctx.plugin(plugin, its_config).wait()
            await host.ctx.plugin(dsh_plugin_shell, Config(folder=self.folder, env=env, **config)).wait()
            yield host

    async def run(self, command: str, **config: Any) -> Any:
        """The result of one command on a host of its own."""
        async with self.host(**config) as host:
            return await call(host, command)

    def processes(self) -> list[int]:
        """The processes that the commands of this test have started."""
        return [pid for pid in all_processes() if f"TEST_MARK={self.mark}".encode() in environment_of(pid)]


async def call(host: Any, command: str | list[str], signal: Any = None) -> Any:
    """Make one call."""
    arguments = {"command": command} if isinstance(command, str) else {"argv": command}
    signal = signal or AbortController().signal
    return await host.ctx.tools.execute(ToolExecutionInput("c1", "shell_run", arguments, signal))


def all_processes() -> list[int]:
    """Every process there is."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def environment_of(pid: int) -> list[bytes]:
    """The variables of a process."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def children() -> set[int]:
    """The children of this process, zombies included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found
