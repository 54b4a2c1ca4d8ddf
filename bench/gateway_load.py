"""The gateway under load: many clients over HTTP, each with calls in flight, while the servers behind it are killed.

Nothing may be lost, answered twice, or answered to somebody else, and memory may not grow. A few of the clients are the
SDK's; the others are lean, so that the load is on the gateway and not on its clients. They are in this process; the
gateway is a process of its own with two servers behind it. A server that is killed comes back; calls that it takes
along end as failures, which counts as answered.

    python bench/gateway_load.py [--seconds 60] [--clients 64] [--flight 16] [--sdk 4]

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
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import trio
from attrs import define, field
from lean_client import LeanClient, WrongAnswerError
from mcp import Client
from mcp.shared.exceptions import MCPError

GROWTH = 20.0
#: Seconds between two kills; each server is there for twice as long.
KILL_EVERY = 6.0
#: What a call may end as while its server is away.
AWAY = ("gone away", "no tool named", "is not there")
#: Calls a tool: whether it failed, its structured content, what it says.
Lane: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[tuple[bool, Any, str]]]


async def serve_tools() -> None:
    """A server with one tool, over stdio."""
    from mcp.server import MCPServer

    server = MCPServer("behind")

    @server.tool()
    def echo(text: str) -> dict[str, str]:
        return {"text": text}

    await server.run_stdio_async()


async def serve_gateway() -> None:
    """The gateway; says its URL and then serves."""
    from dsh_runtime import open_host

    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--serve", "tools"]
        rows: list[dict[str, Any]] = [
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

    asked: int = 0
    outcomes: Counter[str] = field(factory=Counter)
    times: list[float] = field(factory=list)

    def note(self, outcome: str, seconds: float) -> None:
        self.outcomes[outcome] += 1
        self.times.append(seconds)


async def call_on(lane: Lane, who: str, until: float, tally: Tally) -> None:
    """Make calls, one after the other, each with a text of its own."""
    number = 0
    while perf_counter() < until:
        number += 1
        tally.asked += 1
        text, began = f"{who}:{number}", perf_counter()
        try:
            outcome = _judge(*await lane(f"{'ab'[number % 2]}_echo", {"text": text}), text)
        except (MCPError, WrongAnswerError) as error:
            outcome = f"error: {error}"
        tally.note(outcome, perf_counter() - began)
        if outcome == "server away":
            # It is refused at once; whoever asks again without a pause keeps the gateway from bringing it back.
            await trio.sleep(0.1)


def _judge(is_error: bool, content: Any, said: str, text: str) -> str:
    if not is_error:
        return "answered" if content == {"text": text} else "SOMEBODY ELSE'S"
    return "server away" if any(words in said for words in AWAY) else f"failed: {said[:80]}"


def sdk_lane(client: Client) -> Lane:
    """Calls of the SDK's client."""

    async def call(name: str, arguments: dict[str, Any]) -> tuple[bool, Any, str]:
        result = await client.call_tool(name, arguments)
        said = " ".join(getattr(block, "text", "") for block in result.content)
        return result.is_error, result.structured_content, said

    return call


def lean_lane(client: LeanClient) -> Lane:
    """Calls of a lean client, on a connection of their own."""
    wire = client.wire()

    async def call(name: str, arguments: dict[str, Any]) -> tuple[bool, Any, str]:
        result = await client.call(wire, name, arguments)
        said = " ".join(block.get("text", "") for block in result["content"])
        return result.get("isError", False), result.get("structuredContent"), said

    return call


async def kill_on(gateway: int, until: float, killed: list[int]) -> None:
    """Kill the servers in turn: the older one is killed next."""
    while perf_counter() < until - KILL_EVERY:
        await trio.sleep(KILL_EVERY)
        if len(servers := children_of(gateway)) == 2:
            killed.append(min(servers))
            os.kill(killed[-1], signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def watch_memory(pid: int, until: float, seen: list[float]) -> None:
    """Note the gateway's memory after ten seconds, every five after that, and at the end."""
    await trio.sleep(min(10.0, (until - perf_counter()) / 2))
    seen.append(megabytes(pid))
    while perf_counter() < until:
        await trio.sleep(min(5.0, max(0.0, until - perf_counter())))
        seen.append(megabytes(pid))


def megabytes(pid: int) -> float:
    """The resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def cpu_seconds(pid: int) -> float:
    """The time that a process has had of a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(url: str, pid: int, options: Any) -> int:
    """Run the load; print what came of it."""
    tally, killed, memory = Tally(), [], []  # type: ignore[var-annotated]
    place = urlsplit(url)
    async with AsyncExitStack() as stack:
        lanes: list[Lane] = []
        for number in range(options.clients):
            if number < options.sdk:
                client = await stack.enter_async_context(Client(url, mode=("legacy", "auto")[number % 2]))
                lanes += [sdk_lane(client)] * options.flight
            else:
                lean = LeanClient(str(place.hostname), place.port or 80, place.path, modern=number % 2 == 1)
                await lean.open()
                lanes += [lean_lane(lean) for _ in range(options.flight)]
        until, spent = perf_counter() + options.seconds, (cpu_seconds(pid), cpu_seconds(os.getpid()))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_memory, pid, until, memory)
            nursery.start_soon(kill_on, pid, until, killed)
            for lane_number, lane in enumerate(lanes):
                nursery.start_soon(call_on, lane, str(lane_number), until, tally)
        print(f"CPU: gateway {cpu_seconds(pid) - spent[0]:.1f} s, clients {cpu_seconds(os.getpid()) - spent[1]:.1f} s")
    return report(tally, killed, memory, options.seconds)


def report(tally: Tally, killed: list[int], memory: list[float], seconds: float) -> int:
    """Print the figures; 1 if a goal is missed."""
    times = sorted(tally.times)
    print(f"{len(times):,} calls, {len(times) / seconds:,.0f} a second, servers killed {len(killed)} times")
    print(f"median {times[len(times) // 2] * 1e3:.0f} ms, p99 {times[len(times) * 99 // 100] * 1e3:.0f} ms")
    for outcome, number in tally.outcomes.most_common():
        print(f"{number:>9,} {outcome}")
    growth = max(memory[1:]) - memory[0]
    print(f"memory (MB) {' '.join(f'{each:.1f}' for each in memory)}")
    print(f"growth at most {growth:+.1f} MB, goal below {GROWTH:g} MB")
    wrong = [outcome for outcome in tally.outcomes if outcome not in ("answered", "server away")]
    lost = tally.asked - len(times)
    print(f"{lost} lost, {sum(tally.outcomes[outcome] for outcome in wrong)} wrong")
    return int(bool(wrong) or lost != 0 or growth >= GROWTH)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--flight", type=int, default=16)
    parser.add_argument("--sdk", type=int, default=4, help="so many of the clients are the SDK's")
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
