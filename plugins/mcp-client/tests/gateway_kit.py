"""A host with the plugin, in this process, and servers in processes of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dsh_plugin_mcp_client
import trio
from attrs import define, field
from dsh_hookspecs import AbortController, Context, ToolExecutionResult

from dsh_runtime import Host, ToolExecutionInput, open_host

RUDE = Path(__file__).with_name("rude_server.py")
#: Nothing here takes long; what hangs is to fail and not to block.
PATIENCE = 20
NAMES = [
    *("echo", "answer", "twice", "never", "cancelled", "die", "rubbish", "too-much-rubbish", "long"),
    *("flood-stderr", "environ", "progress", "change", "pid", "child", "raw", "told"),
]


def entry(name: str, **more: Any) -> dict[str, Any]:
    """One tool as a server lists it."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


@define
class Gateway:
    """The host, and one server in it."""

    host: Host
    id: str
    tools_file: Path
    calls: int = 0
    heard: list[Any] = field(factory=list)

    @property
    def ctx(self) -> Context:
        return self.host.ctx

    def names(self) -> list[str]:
        """The names of the tools that the host offers."""
        return [schema["name"] for schema in self.ctx.tools.schemas()]

    async def call(self, name: str, controller: AbortController | None = None, **arguments: Any) -> Any:
        """The result of one call."""
        self.calls += 1
        signal = (controller or AbortController()).signal
        with trio.fail_after(PATIENCE):
            return await self.ctx.tools.execute(ToolExecutionInput(f"c{self.calls}", name, arguments, signal))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        with trio.fail_after(PATIENCE):
            while not holds():  # noqa: ASYNC110 - another process makes it hold
                await trio.sleep(0.01)


def row(id: str, folder: Path, how: str = "polite", tools: list[Any] | None = None, **config: Any) -> dict[str, Any]:
    """The row of a rude server; its tools stand in a file of the folder."""
    file = folder / f"{id}.json"
    if not file.exists():
        file.write_text(json.dumps([entry(name) for name in NAMES] if tools is None else tools))
    config.setdefault("fingerprints", str(folder / "fingerprints.json"))
    config.setdefault("protocol", "legacy")
    command = [sys.executable, "-I", str(RUDE), how, str(file)]
    return {"id": id, "use": "mcp-client", "config": {"command": command, **config}}


@asynccontextmanager
async def gateway(
    folder: Path, how: str = "polite", tools: list[Any] | None = None, plugins: Any = (), **config: Any
) -> AsyncIterator[Gateway]:
    """A host with one rude server."""
    rows = [row("rude", folder, how, tools, **config)]
    async with open_host({"host": {"log": {"enabled": False}}, "plugin": rows}, plugins=plugins) as host:
        yield Gateway(host, "rude", folder / "rude.json")


def code(result: ToolExecutionResult) -> str | None:
    """The code of a failure; ``None`` for a success."""
    return result.error.info.code if result.is_error and result.error.info is not None else None


assert dsh_plugin_mcp_client.name == "mcp-client"
