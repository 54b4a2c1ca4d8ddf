"""A call through the gateway beside the same call made directly: the SDK's client, the SDK's server, two hops or one.

Over stdio, and over streamable HTTP on both hops. Every process is on its own; the client is the SDK's in all cases.
Rounds alternate; what counts is the ratio of the medians, by the clock on the wall.

    python bench/gateway_bench.py [--rounds 9] [--calls 200]

ends with 1 if a ratio is above its limit: 2.3 over stdio, 2.5 over HTTP.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import trio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

SERVER = Path(__file__).with_name("mcp_stdio_bench.py")
LIMITS = {"stdio": 2.3, "http": 2.5}


def config(server: dict[str, Any], folder: str, log: bool) -> dict[str, Any]:
    """A host with one server behind it."""
    host = {"log": {"path": f"{folder}/log.db"} if log else {"enabled": False}}
    row = {"id": "echo", "use": "mcp-client", "config": {**server, "fingerprints": f"{folder}/f.json"}}
    door = {"id": "door", "use": "mcp-server", "config": {"http": {"port": 0}}}
    return {"host": host, "plugin": [row, door]}


async def serve_gateway(kind: str, behind: str | None) -> None:
    """A host between a client and a bare server of the SDK."""
    from dsh_runtime import open_host

    with tempfile.TemporaryDirectory() as folder:
        command = {"command": [sys.executable, str(SERVER), "--serve", "bare"]}
        server = {"url": behind} if kind == "gateway-http" else command
        async with open_host(config(server, folder, kind == "logged")) as host:
            door = host.ctx.get("mcp_server")
            if kind == "gateway-http":
                await door.serve_http(lambda url: print(url, flush=True))
            else:
                await door.serve_stdio()


async def serve_bare_http() -> None:
    """The SDK's own server over HTTP, under the same web server as the gateway's."""
    from hypercorn.config import Config
    from hypercorn.trio import serve
    from mcp.server import MCPServer

    server = MCPServer("bare")

    @server.tool()
    def echo(text: str) -> dict[str, str]:
        return {"text": text}

    settings = Config()
    settings.bind = ["127.0.0.1:0"]
    settings.accesslog = settings.errorlog = None
    app: Any = server.streamable_http_app()
    async with trio.open_nursery() as nursery:
        binds: list[str] = await nursery.start(serve, app, settings)
        print(f"{binds[0]}/mcp", flush=True)


@contextmanager
def listening(*words: str) -> Iterator[str]:
    """A server of this file in a process of its own; gives its URL."""
    with subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@asynccontextmanager
async def connected(kind: str, stack: ExitStack) -> AsyncIterator[Client]:
    """The SDK's client of one contender."""
    if kind.endswith("http"):
        url = stack.enter_context(listening("--serve", "direct-http"))
        if kind == "gateway-http":
            url = stack.enter_context(listening("--serve", kind, "--behind", url))
        async with Client(url) as client:
            yield client
        return
    script = [str(SERVER), "--serve", "bare"] if kind == "direct" else [__file__, "--serve", kind]
    async with Client(StdioServerParameters(command=sys.executable, args=script)) as client:
        yield client


async def measure(rounds: int, calls: int, kinds: tuple[str, ...]) -> dict[str, float]:
    """The median of the microseconds a call, by contender."""
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    with ExitStack() as processes:
        async with AsyncExitStack() as stack:
            clients = {kind: await stack.enter_async_context(connected(kind, processes)) for kind in kinds}
            for number in range(rounds + 1):
                for kind, client in clients.items():
                    began = perf_counter()
                    for _ in range(calls):
                        result = await client.call_tool("echo", {"text": "hello"})
                    assert not result.is_error, result
                    if number:
                        times[kind].append((perf_counter() - began) / calls * 1e6)
    return {kind: statistics.median(found) for kind, found in times.items()}


def tell(medians: dict[str, float], base: str, gateway: str, limit: float) -> bool:
    """Print one comparison; whether the goal is met."""
    for kind, median in medians.items():
        print(f"{kind:<13} {median:8.0f} us a call   {median / medians[base]:.2f} of {base}")
    ratio = medians[gateway] / medians[base]
    print(f"{gateway} / {base} {ratio:.2f}, goal {limit:g}: {'met' if ratio <= limit else 'MISSED'}")
    return ratio <= limit


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--serve")
    parser.add_argument("--behind")
    options: Any = parser.parse_args()
    if options.serve == "direct-http":
        trio.run(serve_bare_http)
        return 0
    if options.serve:
        trio.run(serve_gateway, options.serve, options.behind)
        return 0
    stdio = trio.run(measure, options.rounds, options.calls, ("direct", "gateway", "logged"))
    met = tell(stdio, "direct", "gateway", LIMITS["stdio"])
    http = trio.run(measure, options.rounds, options.calls, ("direct-http", "gateway-http"))
    return int(not (tell(http, "direct-http", "gateway-http", LIMITS["http"]) and met))


if __name__ == "__main__":
    sys.exit(main())
