"""A call through the gateway beside the same call made directly: the SDK's client, the SDK's server, two hops or one.

Every process is on its own, and the client is the SDK's in both cases. Rounds alternate; what counts is the ratio of
the medians, by the clock on the wall.

    python bench/gateway_bench.py [--rounds 9] [--calls 200] [--limit 2.3]

ends with 1 if the ratio is above the limit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import trio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

SERVER = Path(__file__).with_name("mcp_stdio_bench.py")


async def serve_gateway(log: str | None) -> None:
    """A host between a client and the bare server of the SDK."""
    import dsh_plugin_mcp_server

    from dsh_runtime import open_host

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(SERVER), "--serve", "bare"]
        config = {"command": command, "fingerprints": f"{folder}/fingerprints.json"}
        host_table = {"log": {"path": f"{folder}/log.db"} if log else {"enabled": False}}
        rows = [{"id": "echo", "use": "mcp-client", "config": config}]
        async with open_host({"host": host_table, "plugin": rows}, plugins=[dsh_plugin_mcp_server]) as host:
            await host.ctx.get("mcp_server").serve_stdio()


def parameters(kind: str) -> StdioServerParameters:
    """How a contender is started."""
    script = [str(SERVER), "--serve", "bare"] if kind == "direct" else [__file__, "--serve", kind]
    return StdioServerParameters(command=sys.executable, args=script)


@asynccontextmanager
async def connected(kind: str) -> AsyncIterator[Client]:
    """The SDK's client of one contender."""
    async with Client(parameters(kind)) as client:
        yield client


async def measure(rounds: int, calls: int, kinds: tuple[str, ...]) -> dict[str, list[float]]:
    """Microseconds a call, by contender and round."""
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    async with AsyncExitStack() as stack:
        clients = {kind: await stack.enter_async_context(connected(kind)) for kind in kinds}
        for number in range(rounds + 1):
            for kind, client in clients.items():
                began = perf_counter()
                for _ in range(calls):
                    result = await client.call_tool("echo", {"text": "hello"})
                assert not result.is_error, result
                if number:
                    times[kind].append((perf_counter() - began) / calls * 1e6)
    return times


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--limit", type=float, default=2.3)
    parser.add_argument("--serve", choices=("gateway", "logged"))
    options: Any = parser.parse_args()
    if options.serve:
        trio.run(serve_gateway, "log" if options.serve == "logged" else None)
        return 0
    times = trio.run(measure, options.rounds, options.calls, ("direct", "gateway", "logged"))
    medians = {kind: statistics.median(found) for kind, found in times.items()}
    for kind, median in medians.items():
        print(f"{kind:<8} {median:8.0f} us a call   {median / medians['direct']:.2f} of direct")
    ratio = medians["gateway"] / medians["direct"]
    print(f"gateway / direct {ratio:.2f}, goal {options.limit:g}: {'met' if ratio <= options.limit else 'MISSED'}")
    return int(ratio > options.limit)


if __name__ == "__main__":
    sys.exit(main())
