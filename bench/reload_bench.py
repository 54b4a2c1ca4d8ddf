"""What a reload costs beyond importing and applying the plugin, and what mounting many plugins costs each.

A host of thirty plugins, each a package with a tool and listeners on every stage. One of them is edited and reloaded,
by the clock on the wall; what the report says importing and applying took is taken off.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import trio
from harness import Figure, main

from dsh_runtime import open_host

PLUGINS, CONSUMERS, MANY = 30, 10, 1_000
GOAL = 50.0

HEAD = """
import attrs
from dsh_runtime import ToolOutput, define_tool, hookimpl
from {package} import words

inject = {inject}
VERSION = {version}


@attrs.frozen
class Config:
    greeting: str = "hello"


def apply(ctx, config):
    ctx.tools.register(define_tool(
        name="{package}", description="Says something.", parameters={{"name": {{"type": "string", "required": True}}}},
        output=ToolOutput(schema={{"type": "string"}}), execute=execute,
    ))
    ctx.provide("{package}", VERSION)


async def execute(args, exec):
    return words.phrase(args["name"])


@hookimpl
async def tools_pre_execute(exec, next):
    return await next()


@hookimpl
async def tools_execute(exec, next):
    return await next()


@hookimpl
async def tools_post_execute(exec, result, next):
    return await next()


@hookimpl
def tools_result(exec, result): ...
"""
WORDS = "def phrase(name):\n    return f'hello {name}'\n" + "".join(
    f"\n\ndef number_{number}(value):\n    if value > {number}:\n        return value - {number}\n    return {number}\n"
    for number in range(60)
)


def write(folder: Path, number: int, version: int, inject: list[str]) -> Path:
    """Write one plugin; the file that an edit changes."""
    package = f"bench_plugin_{number}"
    path = folder / package / "__init__.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(HEAD.format(package=package, version=version, inject=inject))
    (folder / package / "words.py").write_text(WORDS)
    return path


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[Any]:
    """A host of many plugins, some of which use the service of the first."""
    rows = []
    for number in range(PLUGINS):
        use = ["tools", "bench_plugin_0"] if 0 < number <= CONSUMERS else ["tools"]
        write(folder, number, 0, use)
        rows.append(f'[[plugin]]\nid = "p{number}"\nuse = "bench_plugin_{number}"\n')
    (folder / "dsh.toml").write_text("[host.log]\nenabled = false\n" + "".join(rows))
    async with open_host(folder / "dsh.toml") as host:
        yield host


async def overhead(host: Any, folder: Path, number: int, version: int, reloaded: int) -> float:
    """The milliseconds of one reload beyond importing and applying."""
    path = write(folder, number, version, ["tools"])
    gc.collect()
    start = perf_counter()
    report = await host.reload.changed([path])
    taken = (perf_counter() - start) * 1000
    if not report.ok or len(report.reloaded) != reloaded:
        raise SystemExit(f"the reload did not take: {report}")
    await host.reload.rest()
    return taken - sum(one.milliseconds for one in report.reloaded)


async def reloads(folder: Path, rounds: int) -> list[Figure]:
    async with hosted(folder) as host:
        start = perf_counter()
        await host.reload.prepare()
        prepared = (perf_counter() - start) * 1000
        alone = [await overhead(host, folder, PLUGINS - 1, 2 + version, 1) for version in range(rounds)]
        both = [await overhead(host, folder, 0, 2 + version, 1 + CONSUMERS) for version in range(rounds)]
        resting = (perf_counter(), await host.reload.changed([folder / "nothing.py"]), perf_counter())
    plugins = f"one of {PLUGINS} plugins"
    return [
        Figure(f"reading the sources of {PLUGINS} plugins, once", prepared, "ms"),
        Figure(f"reload of {plugins}", statistics.median(alone), "ms", GOAL),
        Figure(f"reload of {plugins}, the worst", max(alone), "ms", GOAL),
        Figure(f"reload with {CONSUMERS} consumers", statistics.median(both), "ms", GOAL),
        Figure("a change that concerns nobody", (resting[2] - resting[0]) * 1000, "ms"),
    ]


async def mounted(count: int) -> float:
    """The milliseconds that each of many plugins costs to mount and apply."""

    def plugin(number: int) -> Any:
        def apply(ctx: Any) -> None:
            ctx.provide(f"bench_{number}", number)

        return apply

    start = perf_counter()
    async with open_host(plugins=[plugin(number) for number in range(count)]):
        return (perf_counter() - start) * 1000 / count


async def mounting() -> list[Figure]:
    few, many = [], []
    for _ in range(5):
        few.append(await mounted(MANY // 10))
        many.append(await mounted(MANY))
    ratio = statistics.median(b / a for a, b in zip(few, many, strict=True))
    return [
        Figure(f"mounting {MANY:,} plugins, each", statistics.median(many), "ms"),
        Figure(f"each of {MANY:,} / each of {MANY // 10}", ratio, "x", 2),
    ]


def measure(options: argparse.Namespace) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        sys.path.insert(0, name)
        figures = trio.run(reloads, Path(name), options.rounds)
        sys.path.remove(name)
    return [*figures, *trio.run(mounting)]


if __name__ == "__main__":
    main("reload, beyond importing and applying", measure, rounds=15)
