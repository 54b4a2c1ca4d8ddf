"""The round trip of one MCP call over stdio: a host of dsh-runtime beside a bare server of the MCP SDK.

Both run on trio in a process of their own and offer the same tool. The client is as small as can be, so that the
servers' share of the time is as large as can be. Rounds alternate; what counts is the ratio of the medians.

    python bench/mcp_stdio_bench.py [--rounds 7] [--calls 500] [--limit 1.15]

ends with 1 if the ratio is above the limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import Any

PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
OUTPUT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
ARGUMENTS = {"text": "hello"}


async def echo(args: Any) -> dict[str, str]:
    """The tool of both servers."""
    return {"text": args["text"]}


async def serve_bare() -> None:
    """A server of the SDK's low level, over the SDK's stdio transport."""
    import mcp_types as types
    from mcp.server import Server
    from mcp.server.stdio import stdio_server

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        tool = types.Tool(name="echo", description="Echo", input_schema=PARAMETERS, output_schema=OUTPUT)
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        value = await echo(params.arguments)
        text = types.TextContent(type="text", text=json.dumps(value))
        return types.CallToolResult(content=[text], structured_content=value)

    server: Server[Any] = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def serve_host(config: dict[str, Any] | None = None) -> None:
    """A host with the plugin, and the tool in another plugin."""
    import dsh_plugin_mcp_server

    from dsh_runtime import define_tool, open_host

    class Echo:
        name = "echo"
        inject = ("tools",)

        def apply(self, ctx: Any) -> None:
            text = {"text": {"type": "string", "required": True}}
            output = {"type": "object", "additionalProperties": False, "properties": text}
            ctx.tools.register(
                define_tool(name="echo", description="Echo", parameters=text, output=output, execute=echo)
            )

    async with open_host(config, plugins=[dsh_plugin_mcp_server, Echo()]) as host:
        await host.ctx.get("mcp_server").serve_stdio()


async def serve_logged() -> None:
    """The host with a session log as it is by default."""
    with tempfile.TemporaryDirectory() as folder:
        await serve_host({"host": {"log": {"path": f"{folder}/log.db"}}})


COMPARED = ("bare", "host")
SERVERS: dict[str, Callable[[], Any]] = {"bare": serve_bare, "host": serve_host, "logged": serve_logged}


class Client:
    """Asks one server, one request at a time."""

    def __init__(self, server: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", server], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.asked = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.asked += 1
        self.send({"id": self.asked, "method": method, "params": params})
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def round(self, calls: int) -> float:
        """The median of so many round trips, in microseconds."""
        params = {"name": "echo", "arguments": ARGUMENTS}
        times = []
        for _ in range(calls):
            start = perf_counter()
            answer = self.ask("tools/call", params)
            times.append(perf_counter() - start)
            assert answer["result"]["structuredContent"] == ARGUMENTS
        return statistics.median(times) * 1e6

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def measure(rounds: int, calls: int) -> float:
    """Print the medians of both servers and give back the ratio."""
    clients = {name: Client(name) for name in COMPARED}
    figures: dict[str, list[float]] = {name: [] for name in COMPARED}
    for _ in range(rounds):
        for name, client in clients.items():
            figures[name].append(client.round(calls))
    for client in clients.values():
        client.close()
    medians = {name: statistics.median(each) for name, each in figures.items()}
    for name, median in medians.items():
        print(f"{name:>5}: {median:7.0f} us  (rounds {min(figures[name]):.0f} to {max(figures[name]):.0f})")
    return medians["host"] / medians["bare"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", choices=SERVERS, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--limit", type=float, default=1.15)
    options = parser.parse_args()
    if options.serve:
        import trio

        trio.run(SERVERS[options.serve])
        return 0
    ratio = measure(options.rounds, options.calls)
    print(f"ratio: {ratio:.2f}  (limit {options.limit:.2f})")
    return 0 if ratio <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
