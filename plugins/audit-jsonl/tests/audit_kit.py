"""What the tests of the audit log share."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from dsh_hookspecs import AbortController, AbortSignal

from dsh_runtime import ToolExecutionInput, define_tool, open_host


class Host:
    """A host with an audit log and a tool that notes that it ran."""

    def __init__(self, host: Any, path: Path) -> None:
        self.ctx = host.ctx
        self.fiber = next((plugin.fiber for plugin in host.plugins if plugin.id == "audit"), None)
        self.path = path
        self.ran: list[str] = []
        self.add("work", self._work)

    async def _work(self, args: Any, exec: Any) -> str:
        self.ran.append(exec.call_id)
        return "done"

    def add(self, name: str, execute: Callable[[Any, Any], Any]) -> None:
        parameters: Any = {"text": {"type": "string"}}
        output: Any = {"type": "string"}
        tool: Any = define_tool(name=name, description=name, parameters=parameters, output=output, execute=execute)
        self.ctx.tools.register(tool)

    async def call(
        self, call_id: str = "c1", name: str = "work", *, signal: AbortSignal | None = None, **more: Any
    ) -> Any:
        arguments = more.pop("arguments", {})
        signal = signal or AbortController().signal
        return await self.ctx.tools.execute(ToolExecutionInput(call_id, name, arguments, signal, **more))

    async def written(self, count: int) -> list[dict[str, Any]]:
        """The records in the file, once there are so many."""
        await until(lambda: len(records(self.path)) >= count)
        return records(self.path)


@asynccontextmanager
async def audited(path: Path, *more: Any, **config: Any) -> AsyncIterator[Host]:
    row = {"id": "audit", "use": "audit-jsonl", "config": {"path": str(path), **config}}
    async with open_host({"plugin": [row]}, plugins=more) as host:
        yield Host(host, path)


def records(path: Path) -> list[dict[str, Any]]:
    """The records of a file, and of the one that was moved aside before it; a line that is none fails.

    What stands behind the last line break is being written.
    """
    return [json.loads(line) for line in text_of(path).split("\n")[:-1]]


def text_of(path: Path) -> str:
    return "".join(file.read_text(encoding="ascii") for file in (moved(path), path) if file.is_file())


def moved(path: Path) -> Path:
    """Where a file is moved aside to."""
    return path.with_name(f"{path.name}.1")


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what a thread does; virtual time stands still meanwhile."""
    for _ in range(5000):
        if condition():
            return
        await trio.to_thread.run_sync(time.sleep, 0.001)
    raise AssertionError("it did not happen within five seconds")


def code(result: Any) -> str | None:
    assert result.is_error
    return result.error.info.code if result.error.info is not None else None
