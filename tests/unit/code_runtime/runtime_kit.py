"""Runs programs, records what their sub-calls were, and looks at which processes there are."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from dsh_runtime import AbortController, open_host
from dsh_runtime.code_mode.interface import CodeOutcome, CodeProgram, SubError, SubReply
from dsh_runtime.code_mode.runtime import CodeRuntimeConfig, SubprocessRuntime

#: Programs in which nothing else is meant to be slow or large.
QUICK = {"wall_time": 20.0, "cpu_time": 10, "memory": 128 * 1024 * 1024, "spares": 1}


class Recorder:
    """A bridge with a few tools. It knows what came in, what is under way, and what was said after the end."""

    def __init__(self, **tools: Callable[[Any], Awaitable[Any]]) -> None:
        self.entered: list[tuple[str, Any]] = []
        self.under_way = 0
        self.most = 0
        self.finished = 0
        self.cancelled = 0
        self.closed = 0
        self.late = 0
        self.ending = trio.Event()
        self.started = trio.Event()
        self._tools: dict[str, Callable[[Any], Awaitable[Any]]] = {
            "echo": self._echo, "fail": self._fail, "forever": self._forever, **tools
        }  # fmt: skip

    def enter(self, name: str, arguments: Any) -> Callable[[], Awaitable[SubReply]]:
        """Take a sub-call in."""
        self.late += self.closed
        self.entered.append((name, arguments))

        async def go() -> SubReply:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            self.started.set()
            try:
                return await self._call(name, arguments)
            except trio.Cancelled:
                self.cancelled += 1
                raise
            finally:
                self.under_way -= 1
                self.finished += 1

        return go

    async def _call(self, name: str, arguments: Any) -> SubReply:
        tool = self._tools.get(name)
        if tool is None:
            return SubReply(error=SubError(f"there is no tool {name!r}", "ToolNotFoundError", "UNKNOWN_TOOL"))
        answer = await tool(arguments)
        return answer if isinstance(answer, SubReply) else SubReply(answer)

    def close(self) -> None:
        """The program has ended."""
        self.closed += 1
        self.ending.set()

    async def _echo(self, arguments: Any) -> Any:
        return arguments

    async def _fail(self, arguments: Any) -> SubReply:
        return SubReply(error=SubError("it does not work", "SomeError", "SOME_CODE"))

    async def _forever(self, arguments: Any) -> Any:
        """Like a tool that heeds its signal: ends when the bridge is closed."""
        await self.ending.wait()
        return "aborted"


@asynccontextmanager
async def runtime(**config: Any) -> AsyncIterator[SubprocessRuntime]:
    """The service on a host of its own."""
    service = SubprocessRuntime(CodeRuntimeConfig(**{**QUICK, **config}))
    async with open_host(plugins=[service]):
        yield service


async def run(service: SubprocessRuntime, code: str, bridge: Recorder | None = None, signal: Any = None) -> CodeOutcome:
    """Run a program, after which everything is at rest."""
    bridge = bridge or Recorder()
    outcome = await service.run(CodeProgram(code, signal or AbortController().signal, bridge))
    assert bridge.closed == 1
    assert bridge.under_way == 0
    assert bridge.late == 0
    return outcome


async def run_one(code: str, bridge: Recorder | None = None, **config: Any) -> CodeOutcome:
    """Run a program on a host of its own."""
    async with runtime(**config) as service:
        return await run(service, code, bridge)


async def kinds(codes: Iterable[str], bridge: Recorder | None = None, **config: Any) -> dict[str, str]:
    """How each of several programs ended, one after the other on one host."""
    async with runtime(**config) as service:
        return {code: kind(await run(service, code, bridge and Recorder())) for code in codes}


def all_of(codes: Iterable[str], kind: str) -> dict[str, str]:
    """The same ending for all."""
    return dict.fromkeys(codes, kind)


def kind(outcome: CodeOutcome) -> str:
    """How a run has ended, with the whole outcome where that is a surprise."""
    return outcome.failure.kind if outcome.failure is not None else "ended"


def descendants() -> set[int]:
    """The processes below this one, zombies included."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parents[int(name)] = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[1])
    found: set[int] = set()
    ring = {os.getpid()}
    while ring:
        ring = {pid for pid, parent in parents.items() if parent in ring} - found
        found |= ring
    return found


def processes_of(user: int) -> list[int]:
    """The processes of a user."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                if f"Uid:\t{user}\t" in Path(f"/proc/{name}/status").read_text():
                    found.append(int(name))
    return found


async def eventually(check: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait for what the system is about to do, and cannot be waited for in another way."""
    with trio.fail_after(seconds):
        while not check():  # noqa: ASYNC110
            await trio.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody has collected yet does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
