"""A host in this process with clients over memory, and a host in a process of its own with clients over pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import dsh_plugin_mcp_server
import dsh_plugin_mcp_server._session
import pytest
import trio
from attrs import define, field, frozen
from dsh_plugin_mcp_server import McpServer
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.memory import create_client_server_memory_streams

from dsh_runtime import Context, ToolDefinition, ToolOutput, open_host

# What is not imported yet is imported in a thread, which virtual time does not wait for: hence _session above.
# The kits of this folder are importable.
sys.path.insert(0, str(Path(__file__).parent))

TRIAL = Path(__file__).with_name("trial.py")
DSH_RUN = Path(sys.executable).with_name("dsh-run")
#: Nothing here takes long; what hangs is to fail and not to block.
PATIENCE = 20


@frozen
class Seen:
    """One result as an observer saw it."""

    call_id: str
    agent: object
    code: str | None


class Bystander:
    """A plugin that does what a test needs, and observes."""

    name = "bystander"
    inject = ("tools",)

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.ctx: Context

    def apply(self, ctx: Context) -> None:
        self.ctx = ctx
        ctx.on("tools/result", self.observe)

    def observe(self, exec: Any, result: Any) -> None:
        self.seen.append(Seen(exec.call_id, exec.agent, result.error.info.code if result.is_error else None))


@frozen
class Served:
    """A host that serves MCP, seen from a plugin beside the server."""

    ctx: Context
    server: McpServer
    seen: list[Seen]
    #: The fiber of the server.
    fiber: Any

    def offer(self, name: str, body: Callable[..., Any], output: Any = None, **more: Any) -> Callable[[], None]:
        """Register a tool."""
        schema = output if output is not None else {"type": "object"}
        definition = ToolDefinition(name, f"Tries {name}", {"type": "object"}, ToolOutput(schema, **more), body)
        undo: Callable[[], None] = self.ctx.tools.register(definition)
        return undo

    @asynccontextmanager
    async def link(self) -> AsyncIterator[Any]:
        """The client's ends of two streams, served until the block is left."""
        async with create_client_server_memory_streams() as (client, (read, write)), trio.open_nursery() as nursery:
            nursery.start_soon(self.server.serve, read, write)
            yield client
            await client[1].aclose()

    @asynccontextmanager
    async def client(self, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
        """A client of the SDK's, connected."""
        with trio.fail_after(PATIENCE):
            async with Client(self.link(), mode=mode, **options) as client:
                yield client


@asynccontextmanager
async def _serve(host: dict[str, Any] | None = None, **config: Any) -> AsyncIterator[Served]:
    bystander = Bystander()
    settings = {"drain_timeout": 0.5, **(host or {})}
    async with open_host({"host": settings}, plugins=[bystander]) as opened:
        fiber = opened.ctx.plugin(dsh_plugin_mcp_server, config)
        await fiber.wait()
        yield Served(bystander.ctx, opened.ctx.get("mcp_server"), bystander.seen, fiber)


@pytest.fixture
def serve() -> Callable[..., AbstractAsyncContextManager[Served]]:
    """``async with serve(**config) as served``; ``host`` are settings of the host."""
    return _serve


@define
class Pipes:
    """A host in a process of its own, and both ends of its pipes."""

    process: trio.Process
    log: Path
    _unread: bytearray = field(factory=bytearray)

    async def send(self, *messages: dict[str, Any] | bytes) -> None:
        """Write messages, or bytes as they are."""
        assert self.process.stdin is not None
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
            await self.process.stdin.send_all(data + b"\n")

    async def receive(self) -> dict[str, Any]:
        """The next message; whatever else stands on stdout fails the test."""
        assert self.process.stdout is not None
        while b"\n" not in self._unread:
            chunk = await self.process.stdout.receive_some()
            assert chunk, "the server has closed its stdout"
            self._unread += chunk
        line, _, rest = bytes(self._unread).partition(b"\n")
        self._unread[:] = rest
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    async def ask(self, method: str, request_id: int | str, **params: Any) -> dict[str, Any]:
        """Send a request and read what comes next."""
        await self.send({"id": request_id, "method": method, "params": params})
        return await self.receive()

    async def greet(self) -> None:
        """Shake hands."""
        await self.ask(
            "initialize",
            "hello",
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo={"name": "test", "version": "0"},
        )
        await self.send({"method": "notifications/initialized"})

    async def leave(self) -> None:
        """Close both pipes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        await self.process.stdin.aclose()
        await self.process.stdout.aclose()

    async def rest(self) -> list[dict[str, Any]]:
        """Everything that is still on stdout, up to its end."""
        assert self.process.stdout is not None
        data = bytes(self._unread)
        async for chunk in self.process.stdout:
            data += chunk
        return [json.loads(line) for line in data.splitlines()]

    def events(self, event: str) -> list[dict[str, Any]]:
        """What the host has logged of one kind."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [entry for entry in map(json.loads, lines) if entry["event"] == event]


def _command(directory: Path, gate: str | None = None, **config: Any) -> tuple[list[str], Path]:
    """How to start ``dsh-run mcp`` with the tools of ``trial.py``, and where these log."""
    log, file = directory / "log", directory / "dsh.toml"
    settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in config.items())
    gating = f'[[plugin]]\nid = "gate"\nuse = "permission-gate"\n[plugin.config]\ndefault = "{gate}"\n'
    file.write_text(
        f'[[plugin]]\nid = "trial"\nuse = "{TRIAL}"\n[plugin.config]\nlog = "{log}"\n{gating if gate else ""}'
        f'[[plugin]]\nid = "mcp-server"\nuse = "mcp-server"\n[plugin.config]\n{settings}'
    )
    return [str(DSH_RUN), "--config", str(file), "mcp"], log


@pytest.fixture
def command(tmp_path: Path) -> tuple[list[str], Path]:
    """``dsh-run mcp`` with the tools of ``trial.py``, and where these log."""
    return _command(tmp_path)


@pytest.fixture
def gated_command(tmp_path: Path) -> tuple[list[str], Path]:
    """The same behind a permission gate that asks about every call."""
    return _command(tmp_path, gate="ask")


@asynccontextmanager
async def _piped(directory: Path, ends_with: int = 0, **config: Any) -> AsyncIterator[Pipes]:
    words, log = _command(directory, **config)
    errors = directory / "stderr"
    with errors.open("wb") as stderr, trio.fail_after(PATIENCE):
        process = await trio.lowlevel.open_process(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        try:
            yield Pipes(process, log)
            assert await process.wait() == ends_with, errors.read_text()
        finally:
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
    assert "Traceback" not in errors.read_text(), errors.read_text()


@pytest.fixture
def piped(tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Pipes]]:
    """``async with piped(**config) as pipes``: the block must bring the host to its end, which must be clean."""
    return partial(_piped, tmp_path)


@pytest.fixture
def over_stdio(command: tuple[list[str], Path]) -> Callable[..., AbstractAsyncContextManager[tuple[Client, Path]]]:
    """``async with over_stdio() as (client, log)``: the SDK's client and a host in a process of its own."""

    @asynccontextmanager
    async def connect(mode: str = "auto", **options: Any) -> AsyncIterator[tuple[Client, Path]]:
        (program, *arguments), log = command
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
        with trio.fail_after(PATIENCE):
            async with Client(stdio_client(parameters), mode=mode, **options) as client:
                yield client, log

    return connect
