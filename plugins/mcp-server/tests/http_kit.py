"""A host that serves HTTP in this process, and clients of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dsh_plugin_mcp_server
import httpx2
import trio
from attrs import define
from dsh_hookspecs import Context
from dsh_plugin_mcp_server._http.tokens import add_token
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from dsh_runtime import Host, ToolDefinition, ToolOutput, open_host

PATIENCE = 10
JSON_AND_EVENTS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
MODERN = "2026-07-28"


class Tools:
    """The tools of the trial, and what has become of their calls."""

    name = "trial"
    inject = ("tools",)

    def __init__(self) -> None:
        self.seen: list[tuple[str, object, str | None]] = []
        self.begun = trio.Event()
        self.ctx: Context

    def apply(self, ctx: Context) -> None:
        self.ctx = ctx
        ctx.on("tools/result", self.observe)
        for name, execute in {"echo": self.echo, "wait": self.wait, "steps": self.steps, "whoami": self.whoami}.items():
            ctx.tools.register(
                ToolDefinition(name, f"Does {name}.", {"type": "object"}, ToolOutput(schema={}), execute)
            )

    def observe(self, exec: Any, result: Any) -> None:
        self.seen.append((exec.name, exec.agent, result.error.info.code if result.is_error else None))

    async def has_begun(self) -> None:
        """Wait until a call of the tool ``wait`` has begun."""
        with trio.fail_after(PATIENCE):
            await self.begun.wait()

    async def echo(self, args: Any, exec: Any) -> Any:
        return args

    async def wait(self, args: Any, exec: Any) -> Any:
        self.begun.set()
        await trio.sleep_forever()

    async def steps(self, args: Any, exec: Any) -> str:
        for done in (1, 2):
            exec.progress(done, 2, f"step {done}")
        return "done"

    async def whoami(self, args: Any, exec: Any) -> str:
        return repr(exec.agent)


@define
class Served:
    """The host, its server, and the file of tokens."""

    host: Host
    tools: Tools
    url: str
    tokens: Path
    stop: Callable[[], None]

    def headers(self, token: str | None = None, **more: str) -> dict[str, str]:
        """The headers of a request."""
        found = {**JSON_AND_EVENTS, **{key.replace("_", "-"): value for key, value in more.items()}}
        return {**found, "authorization": f"Bearer {token}"} if token is not None else found

    async def post(self, body: Any, token: str | None = None, **headers: str) -> httpx2.Response:
        """The response to one request."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with httpx2.AsyncClient(trust_env=False) as http:
            with trio.fail_after(PATIENCE):
                return await http.post(self.url, content=content, headers=self.headers(token, **headers))

    @asynccontextmanager
    async def client(self, token: str | None = None, **more: Any) -> AsyncIterator[Client]:
        """The SDK's client."""
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(self.url, http_client=http), **more) as client,
        ):
            yield client


@asynccontextmanager
async def serving(folder: Path, names: tuple[str, ...] = (), **http: Any) -> AsyncIterator[tuple[Served, list[str]]]:
    """Serve; with ``names``, each of them has a token."""
    file = folder / "tokens.toml"
    secrets = [add_token(file, name, ["list", "call"]) for name in names]
    if names:
        http["tokens"] = str(file)
    config = {"http": {"port": 0, "graceful_timeout": 0.5, **http.pop("server", {}), **http}}
    more, log = config["http"].pop("plugin", {}), config["http"].pop("log", {"enabled": False})
    rows = config["http"].pop("rows", [])
    rows = [*rows, {"id": "mcp-server", "use": "mcp-server", "config": {**config, **more}}]
    tools = Tools()
    async with open_host({"host": {"log": log}, "plugin": rows}, plugins=[tools]) as host:
        listening = trio.Event()
        urls: list[str] = []

        def note(url: str) -> None:
            urls.append(url)
            listening.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.ctx.mcp_server.serve_http, note)
            with trio.fail_after(PATIENCE):
                await listening.wait()
            yield Served(host, tools, urls[0], file, nursery.cancel_scope.cancel), secrets
            nursery.cancel_scope.cancel()


def hello(request_id: Any = 1) -> dict[str, Any]:
    """The handshake."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "trial", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": request_id, "method": "initialize", "params": params}


def modern(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    """A request of the protocol without a handshake."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        **params.pop("_meta", {}),
    }
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta}}


assert dsh_plugin_mcp_server.name == "mcp-server"
