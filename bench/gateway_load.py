"""The gateway under load: many clients over HTTP, each with calls in flight, while the servers behind it are killed.

Nothing may be lost, answered twice, or answered to somebody else, and memory may not grow. The clients are the SDK's,
in this process; the gateway is a process of its own with two servers behind it. The server that is killed comes back;
calls that it takes along end as failures, which counts as answered.

    python bench/gateway_load.py [--seconds 60] [--clients 64] [--flight 16]

ends with 1 if an answer is missing or wrong, or memory grows by 20 MB or more after the first ten seconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

import trio
from attrs import define, field
from mcp import Client
from mcp.shared.exceptions import MCPError

GROWTH = 20.0
#: What a call may end as while its server is away.
AWAY = ("gone away", "no tool named", "is not there")


async def serve_tools() -> None:
    """A server with two tools, over stdio."""
    from mcp.server import MCPServer

    server = MCPServer("behind")

    @server.tool()
    def echo(text: str) -> dict[str, str]:
        return {"text": text}

    @server.tool()
    def pid() -> dict[str, int]:
        return {"pid": os.getpid()}

    await server.run_stdio_async()


async def serve_gateway() -> None:
    """The gateway; says its URL and then serves."""
    from dsh_runtime import open_host

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--serve", "tools"]
        rows = [
            {
                "id": name,
                "use": "mcp-client",
                "config": {"command": command, "prefix": f"{name}_", "fingerprints": f"{folder}/f.json"},
            }
            for name in ("a", "b")
        ]
        http = {"port": 0, "max_requests": 5000, "max_sessions": 200, "max_sessions_per_client": 200}
        rows.append({"id": "door", "use": "mcp-server", "config": {"http": http, "max_concurrent_calls": 2000}})
        async with open_host({"host": {"log": {"enabled": False}}, "plugin": rows}) as host:
            await host.ctx.get("mcp_server").serve_http(lambda url: print(url, flush=True))


@define
class Tally:
    """What has come of the calls."""

    outcomes: Counter[str] = field(factory=Counter)
    times: list[float] = field(factory=list)

    def note(self, outcome: str, seconds: float) -> None:
        self.outcomes[outcome] += 1
        self.times.append(seconds)


async def call_on(client: Client, who: str, until: float, tally: Tally) -> None:
    """Make calls, one after the other, each with a text of its own."""
    number = 0
    while perf_counter() < until:
        number += 1
        text, began = f"{who}:{number}", perf_counter()
        try:
            result = await client.call_tool(f"{'ab'[number % 2]}_echo", {"text": text})
        except MCPError as error:
            tally.note(f"error: {error}", perf_counter() - began)
            continue
        tally.note(_judge(result, text), perf_counter() - began)


def _judge(result: Any, text: str) -> str:
    if not result.is_error:
        return "answered" if result.structured_content == {"text": text} else "SOMEBODY ELSE'S"
    said = " ".join(getattr(block, "text", "") for block in result.content)
    return "server away" if any(words in said for words in AWAY) else f"failed: {said[:80]}"


async def kill_on(client: Client, until: float, killed: list[int]) -> None:
    """Kill the servers in turn."""
    turn = 0
    while perf_counter() < until - 2:
        await trio.sleep(2)
        turn += 1
        result = await client.call_tool(f"{'ab'[turn % 2]}_pid", {})
        if not result.is_error:
            os.kill(result.structured_content["pid"], signal.SIGKILL)
            killed.append(turn)


async def watch_memory(pid: int, until: float, seen: list[float]) -> None:
    """Note the gateway's memory after ten seconds, and at the end."""
    await trio.sleep(min(10.0, (until - perf_counter()) / 2))
    seen.append(megabytes(pid))
    await trio.sleep(max(0.0, until - perf_counter()))
    seen.append(megabytes(pid))


def megabytes(pid: int) -> float:
    """The resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


async def load(url: str, pid: int, options: Any) -> int:
    """Run the load; print what came of it."""
    tally, killed, memory = Tally(), [], []  # type: ignore[var-annotated]
    async with AsyncExitStack() as stack:
        modes = ("legacy", "auto")
        clients = [await stack.enter_async_context(Client(url, mode=modes[n % 2])) for n in range(options.clients)]
        until = perf_counter() + options.seconds
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_memory, pid, until, memory)
            nursery.start_soon(kill_on, clients[0], until, killed)
            for number, client in enumerate(clients):
                for lane in range(options.flight):
                    nursery.start_soon(call_on, client, f"{number}.{lane}", until, tally)
    return report(tally, killed, memory, options.seconds)


def report(tally: Tally, killed: list[int], memory: list[float], seconds: float) -> int:
    """Print the figures; 1 if a goal is missed."""
    times = sorted(tally.times)
    print(f"{len(times):,} calls, {len(times) / seconds:,.0f} a second, servers killed {len(killed)} times")
    print(f"median {times[len(times) // 2] * 1e3:.0f} ms, p99 {times[len(times) * 99 // 100] * 1e3:.0f} ms")
    for outcome, number in tally.outcomes.most_common():
        print(f"{number:>9,} {outcome}")
    growth = memory[1] - memory[0]
    print(f"memory {memory[0]:.1f} MB, then {growth:+.1f} MB, goal below {GROWTH:g} MB")
    wrong = [outcome for outcome in tally.outcomes if outcome not in ("answered", "server away")]
    return int(bool(wrong) or growth >= GROWTH)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--flight", type=int, default=16)
    parser.add_argument("--serve", choices=("tools", "gateway"))
    options = parser.parse_args()
    if options.serve:
        trio.run(serve_tools if options.serve == "tools" else serve_gateway)
        return 0
    command = [sys.executable, __file__, "--serve", "gateway"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as gateway:
        assert gateway.stdout is not None
        try:
            return trio.run(load, gateway.stdout.readline().strip(), gateway.pid, options)
        finally:
            gateway.terminate()


if __name__ == "__main__":
    sys.exit(main())
