"""What an idle ``dsh-run dev`` costs, what a save waits until it is in force, and what the watchdog costs a call.

The idle figure is the processor time of a process of its own, of all its threads, while nothing happens: watcher and
watchdog together. It is measured over several spans, of which the least counts, since others use the machine, too. The
folder holds a project of many files, as real ones do.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter, sleep

import trio
from harness import Contender, Figure, Operation, interleaved, main

from dsh_runtime import AbortController, ToolExecutionInput, open_host
from dsh_runtime.loader.autoreload.task import AutoReload

FILES, SPAN = 5_000, 10.0
GOAL = 100.0

SOURCE = '''
from dsh_runtime import tool

inject = ["tools"]
VERSION = {version}


@tool
async def hello(name: str) -> str:
    """Say hello."""
    return f"hello {{name}}"


def apply(ctx):
    ctx.tools.register(hello)
'''


def project(folder: Path) -> Path:
    """A plugin in a folder of many files."""
    for number in range(FILES):
        (folder / f"data{number}.txt").touch()
    file = folder / "plugin.py"
    file.write_text(SOURCE.format(version=0))
    return file


def idle(spans: int) -> float:
    """Milliseconds of processor a minute."""
    with tempfile.TemporaryDirectory() as folder:
        file = project(Path(folder))
        command = [sys.executable, "-m", "dsh_runtime", "dev", str(file)]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while "watching" not in process.stdout.readline():
                pass
            sleep(2)
            used = [_used_in(process.pid, SPAN) for _ in range(spans)]
            process.terminate()
    return min(used) / SPAN * 60


def _used_in(pid: int, seconds: float) -> float:
    before = _used(pid)
    sleep(seconds)
    return (_used(pid) - before) * 1_000


def _used(pid: int) -> float:
    """What the scheduler has given the threads of a process, in seconds; finer than the ticks of ``stat``."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


async def saves(rounds: int) -> list[float]:
    """Milliseconds from a save to the end of its reload."""
    took: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        file = project(Path(folder))
        async with open_host({"plugin": [{"id": "plugin", "use": str(file)}]}) as host, trio.open_nursery() as nursery:
            send, receive = trio.open_memory_channel[float](1)
            auto = AutoReload(host, tell=lambda report: send.send_nowait(perf_counter()))
            nursery.start_soon(auto.run)
            await trio.sleep(1)
            for version in range(1, rounds + 1):
                began = perf_counter()
                file.write_text(SOURCE.format(version=version))
                took.append((await receive.receive() - began) * 1_000)
                await trio.sleep(0.3)
            nursery.cancel_scope.cancel()
    return took


def calling(watchdog: bool) -> Contender:
    """One small call, and a checkpoint, in a host with or without a watchdog."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Operation]:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "plugin.py"
            file.write_text(SOURCE.format(version=0))
            config = {"plugin": [{"id": "plugin", "use": str(file)}]}
            async with open_host(config, watchdog=watchdog) as host:
                call = ToolExecutionInput("1", "hello", {"name": "Ada"}, AbortController().signal)

                async def operation() -> None:
                    await host.ctx.tools.execute(call)
                    await trio.lowlevel.checkpoint()

                yield operation

    return Contender("with a watchdog" if watchdog else "without", opened)


def measure(options: argparse.Namespace) -> list[Figure]:
    rounds = interleaved([calling(True), calling(False)], rounds=9 * options.rounds, count=2_000)
    figures = [
        Figure("a save until it is in force", statistics.median(trio.run(saves, 3 * options.rounds)), "ms"),
        rounds.against("with a watchdog", "without", 1.03),
    ]
    if os.path.exists(f"/proc/{os.getpid()}/schedstat"):
        figures.insert(0, Figure("an idle dsh-run dev, a minute", idle(options.rounds), "ms", GOAL))
    return figures


if __name__ == "__main__":
    main("watching, and the watchdog", measure, rounds=3)
