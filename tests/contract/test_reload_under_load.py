"""What hot reload guarantees, measured: under load, with broken versions in between, and after a thousand times."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from reload_kit import TOOL, Project

from dsh_runtime.loader.leftovers import threads

CALLERS, RELOADS = 200, 100

GOVERNED = """
import trio
from rk_notes import log
from dsh_runtime import Deny, ToolOutput, define_tool, hookimpl

VERSION = {version}
inject = ["tools"]

def apply(ctx):
    ctx.tools.register(define_tool(
        name="version", description="d", parameters={{"n": {{"type": "integer"}}}},
        output=ToolOutput(schema={{"type": "integer"}}), execute=execute,
    ))

async def execute(args, exec):
    await trio.sleep(args["n"] % 3 * 0.01)
    return VERSION

@hookimpl
async def tools_pre_execute(exec, next):
    log.append(("pre", exec.call_id, VERSION))
    return await next()

@hookimpl
async def tools_execute(exec, next):
    log.append(("execute", exec.call_id, VERSION))
    return await next()

@hookimpl
async def tools_post_execute(exec, result, next):
    log.append(("post", exec.call_id, VERSION))
    return await next()

@hookimpl
def tools_result(exec, result):
    log.append(("result", exec.call_id, VERSION))
"""

BROKEN = [
    "def apply(ctx:\n",
    "import rk_nothing_there\n",
    "raise ValueError('while imported')\n",
    "import attrs\n\n@attrs.frozen\nclass Config:\n    needed: int\n\ndef apply(ctx, config): ...\n",
    "def apply(ctx):\n    raise ValueError('in apply')\n",
]
HANGS = "async def apply(ctx):\n    import trio\n    await trio.sleep_forever()\n"


async def test_200_callers_lose_nothing_while_a_plugin_is_reloaded_100_times_with_broken_versions_in_between(
    project: Project,
) -> None:
    """No call is lost, unknown, without its policy or across two versions, and no broken version is ever heard of."""
    project.config("tool = ./tool.py")
    project.write("tool.py", GOVERNED, version=0)
    values: dict[str, int] = {}
    async with project.running() as host:
        under_way = True

        async def keep_calling(caller: int) -> None:
            number = 0
            while under_way:
                number += 1
                values[f"{caller}-{number}"] = await _call(host, f"{caller}-{number}", number)

        async with trio.open_nursery() as nursery:
            for caller in range(CALLERS):
                nursery.start_soon(keep_calling, caller)
            for version in range(1, RELOADS + 1):
                if version % 16 == 0 and version // 16 <= len(BROKEN):
                    assert not (await project.save("tool.py", BROKEN[version // 16 - 1])).ok
                if version == RELOADS // 2:  # It is given up for the next save.
                    nursery.start_soon(project.save, "tool.py", HANGS)
                    while not project.kernel.stages:
                        await project.kernel.next_change()
                report = await project.save("tool.py", GOVERNED, version=version)
                assert report.ok and len(report.reloaded) == 1, report
            under_way = False
        await host.reload.rest()
    heard = {(stage, call): version for stage, call, version in project.log}
    assert len(heard) == len(project.log) == 4 * len(values), "each stage is heard once for each call"
    for call, value in values.items():
        assert {heard[stage, call] for stage in ("pre", "execute", "post", "result")} == {value}
    assert len(values) > CALLERS and max(values.values()) == RELOADS
    assert len(Counter(values.values())) > RELOADS // 2, "calls are spread over the versions"


async def _call(host: Any, call_id: str, number: int) -> int:
    from dsh_runtime import AbortController, ToolExecutionInput

    call = ToolExecutionInput(call_id, "version", {"n": number}, AbortController().signal)
    result = await host.ctx.tools.execute(call)
    assert not result.is_error, result
    return int(result.value)


def resident_bytes() -> int:
    """How much memory the process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def test_a_thousand_reloads_leave_no_listener_task_module_thread_or_memory_behind(project: Project) -> None:
    project.write("rk_thousand/helper.py", "class Helper:\n    pass\n")
    head = "import attrs\nfrom rk_thousand.helper import Helper\n\n@attrs.frozen\nclass Config:\n    size: int = 3\n"
    tasks = "    ctx.start_soon(tick)\n    ctx.provide('thousand', Helper())\n    ctx.scope('thousand')\n"
    more = "\nasync def tick():\n    import trio\n    await trio.sleep_forever()\n"
    source = head + GOVERNED.replace("def apply(ctx):\n", "def apply(ctx, config):\n" + tasks) + more
    project.config("tool = rk_thousand")
    project.write("rk_thousand/__init__.py", source, version=0)
    project.write("user.py", "inject = ['thousand']\n\ndef apply(ctx): ...\n")
    project.config("tool = rk_thousand\nsize = 4", "user = ./user.py")
    async with project.running() as host:
        kernel = project.kernel

        async def reload(version: int) -> None:
            report = await project.save("rk_thousand/__init__.py", source, version=version)
            assert report.ok and len(report.reloaded) == 2, report

        def picture() -> dict[str, Any]:
            return {
                "listeners": sum(len(group) for group in kernel.ledger._groups.values()),
                "fibers": sorted(fiber.id for fiber in (*kernel.fibers, *kernel.retired.fibers)),
                "tasks": sorted(task.name for task in kernel.nursery.child_tasks),
                "steps": [step.label for step in host.ctx.stack.steps],
                # A worker of trio's that waits for a job is nobody's.
                "threads": sorted(thread.name for thread in threads()),
                "modules": sorted(sys.modules),
                "watchers": sum(map(len, kernel.ledger._watchers.values())),
                "finders": len(sys.meta_path),
            }

        for version in range(50):
            await reload(version)
        await host.reload.rest()
        gc.collect()
        before, memory = picture(), resident_bytes() if sys.platform == "linux" else 0
        old = [weakref.ref(project.fiber("tool")), weakref.ref(sys.modules["rk_thousand"])]
        for version in range(1000):
            await reload(version)
            project.log.clear()
        await host.reload.rest()
        gc.collect()
        now = picture()
        assert {key: (before[key], now[key]) for key in now if now[key] != before[key]} == {}
        assert [ref() for ref in old] == [None, None], "nothing keeps an old version alive"
        assert len(_alive("Helper")) == 1
        if sys.platform == "linux":
            assert resident_bytes() - memory < 5_000_000


def _alive(name: str) -> list[Any]:
    return [thing for thing in gc.get_objects() if isinstance(thing, type) and thing.__name__ == name]


@pytest.mark.skipif("DSH_TEST_SLOW" not in os.environ, reason="takes half a minute; set DSH_TEST_SLOW")
async def test_ten_thousand_reloads_in_a_row_while_calls_go_on(project: Project) -> None:
    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=0)
    async with project.running():
        for version in range(1, 10_001):
            assert (await project.save("tool.py", TOOL, version=version)).ok
            assert await project.value() == version
