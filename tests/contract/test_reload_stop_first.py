"""``reload_policy = "stop-first"``: the old version unloads, the new one applies, and calls wait in between."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate
from reload_kit import TOOL, Project, ids

from dsh_runtime import AbortController, State, ToolExecutionInput

#: A plugin that holds what cannot exist twice, and a policy with it.
HOLDER = """
import rk_notes
from rk_notes import log

reload_policy = "stop-first"

async def apply(ctx):
    if rk_notes.held is not None:
        raise RuntimeError("held twice")
    rk_notes.held = {version}
    ctx.effect(lambda: release)
    ctx.on("tools/pre-execute", check)
    log.append("+{version}")
    {then}

def release():
    rk_notes.held = None
    log.append("-{version}")

async def check(exec, next):
    log.append((exec.name, {version}))
    return await next()
"""


@pytest.fixture
def holding(project: Project) -> Project:
    """A tool under a policy that has to stop first."""
    project.notes.held = None
    project.notes.gate = Gate()
    project.config("holder = ./holder.py", "tool = ./tool.py")
    project.write("holder.py", HOLDER, version=1, then="")
    project.write("tool.py", TOOL, version=1)
    return project


async def test_the_old_version_is_gone_before_the_new_one_applies(holding: Project) -> None:
    async with holding.running():
        report = await holding.save("holder.py", HOLDER, version=2, then="")
        assert ids(report.reloaded) == ["holder"]
        assert [entry for entry in holding.log if entry in ("+1", "-1", "+2")] == ["+1", "-1", "+2"]
        assert await holding.value() == 1 and holding.log[-1] == ("version", 2)


async def test_calls_wait_in_between_and_then_run_under_the_new_version(holding: Project) -> None:
    async with holding.running() as host, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: holding.save("holder.py", HOLDER, version=2, then="await rk_notes.gate.stop()"))
        await holding.notes.gate.reached.wait()
        results: list[Any] = []

        async def call() -> None:
            results.append(await holding.call())

        for _ in range(5):
            nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        assert results == [] and host.ctx.fiber.kernel.closed_by is not None
        holding.log.clear()
        holding.notes.gate.go.set()
        await host.reload.rest()
        await trio.testing.wait_all_tasks_blocked()
        assert [result.is_error for result in results] == [False] * 5
        assert [entry for entry in holding.log if isinstance(entry, tuple)] == [("version", 2)] * 5
        assert host.ctx.fiber.kernel.closed_by is None


async def test_a_call_that_has_waited_too_long_is_refused_naming_the_plugin(
    holding: Project, autojump_clock: Any
) -> None:
    holding.config(
        "holder = ./holder.py", "tool = ./tool.py", host="[host]\nreload_wait = 4\n[host.log]\nenabled = false\n"
    )
    async with holding.running(), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: holding.save("holder.py", HOLDER, version=2, then="await rk_notes.gate.stop()"))
        await holding.notes.gate.reached.wait()
        began = trio.current_time()
        result = await holding.call()
        assert (result.error.info.code, result.error.info.plugin) == ("GATE_CLOSED", "holder")
        assert "which has to stop first, is reloaded" in result.error.message and trio.current_time() - began == 4
        holding.notes.gate.go.set()


async def test_a_call_that_is_aborted_while_it_waits_says_so_and_a_cancelled_one_is_observed(holding: Project) -> None:
    async with holding.running() as host, trio.open_nursery() as nursery:
        observed: list[Any] = []
        host.ctx.on("tools/result", lambda result: observed.append(result.error.info.code))
        nursery.start_soon(lambda: holding.save("holder.py", HOLDER, version=2, then="await rk_notes.gate.stop()"))
        await holding.notes.gate.reached.wait()
        controller = AbortController()
        nursery.start_soon(host.ctx.tools.execute, ToolExecutionInput("a", "version", {}, controller.signal))

        async def cancelled() -> None:
            with scope:
                await holding.call()

        scope = trio.CancelScope()
        nursery.start_soon(cancelled)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        controller.abort()
        await trio.testing.wait_all_tasks_blocked()
        assert observed == ["ABORTED_BEFORE_DISPATCH"] * 2
        holding.notes.gate.go.set()


async def test_a_version_that_fails_brings_the_old_one_back_with_its_modules(holding: Project) -> None:
    import sys

    async with holding.running():
        module = sys.modules["dsh_file_plugins.holder"]
        report = await holding.save("holder.py", HOLDER, version=2, then="raise ValueError('no good')")
        (problem,) = report.kept[0].problems
        assert "no good" in problem.message and problem.location.file == str(holding.folder / "holder.py")
        assert [entry for entry in holding.log if isinstance(entry, str) and "tool" not in entry] == [
            "+1", "-1", "+2", "-2", "+1",
        ]  # fmt: skip
        assert holding.fiber("holder").state is State.ACTIVE and sys.modules["dsh_file_plugins.holder"] is module
        assert await holding.value() == 1 and holding.log[-1] == ("version", 1)
        assert (await holding.save("holder.py", HOLDER, version=3, then="")).ok
        assert await holding.value() == 1 and holding.log[-1] == ("version", 3)


@pytest.mark.parametrize("source", ["def apply(:\n", "inject = 3\ndef apply(ctx): ...\n", "raise ValueError\n"])
async def test_what_can_be_seen_beforehand_does_not_stop_the_old_version(source: str, holding: Project) -> None:
    async with holding.running():
        fiber = holding.fiber("holder")
        assert not (await holding.save("holder.py", source)).ok
        assert holding.fiber("holder") is fiber and "-1" not in holding.log


async def test_an_apply_that_hangs_is_given_up_and_the_old_version_comes_back(
    holding: Project, autojump_clock: Any
) -> None:
    async with holding.running():
        report = await holding.save("holder.py", HOLDER, version=2, then="await rk_notes.gate.stop()")
        assert "still loading after 30 s (reload_timeout)" in report.kept[0].problems[0].message
        assert await holding.value() == 1 and holding.log[-1] == ("version", 1)


async def test_when_the_old_version_does_not_come_back_either_the_gate_closes_and_says_why(holding: Project) -> None:
    async with holding.running():
        broken = HOLDER.replace("    ctx.effect(lambda: release)\n", "")
        report = await holding.save("holder.py", broken, version=2, then="raise ValueError('no good')")
        lines = "\n".join(report.lines())
        assert "no good" in lines and "the old version of plugin 'holder' could not be applied again" in lines
        result = await holding.call()
        assert result.error.info.code == "GATE_CLOSED" and "held twice" in result.error.message
        holding.notes.held = None
        assert (await holding.save("holder.py", HOLDER, version=3, then="")).ok
        assert await holding.value() == 1 and holding.log[-1] == ("version", 3)


async def test_a_call_under_way_ends_with_its_sub_calls_before_anything_of_the_old_version_is_gone(
    project: Project,
) -> None:
    source = """
    import rk_notes
    from rk_notes import log
    from dsh_runtime import AbortController, ToolExecutionInput, ToolOutput, define_tool, hookimpl

    inject = ["tools"]
    reload_policy = "stop-first"

    def apply(ctx):
        async def outer(args, exec):
            await rk_notes.gate.stop()
            signal = AbortController().signal
            call = ToolExecutionInput("sub", "inner", {{}}, signal, parent=exec.token, root_call_id="outer")
            return (await ctx.tools.execute(call)).value

        async def inner(args, exec):
            return {version}

        for name, execute in (("outer", outer), ("inner", inner)):
            ctx.tools.register(define_tool(
                name=name, description="d", parameters={{}}, output=ToolOutput(schema={{"type": "integer"}}),
                execute=execute,
            ))
        ctx.effect(lambda: lambda: log.append("-{version}"))

    @hookimpl
    async def tools_pre_execute(exec, next):
        log.append((exec.name, {version}))
        return await next()
    """
    project.notes.gate = gate = Gate()
    project.config("tools = ./tools.py")
    project.write("tools.py", source, version=1)
    async with project.running() as host:
        values: list[Any] = []
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                values.append(await project.value("outer"))

            nursery.start_soon(call)
            await gate.reached.wait()
            nursery.start_soon(lambda: project.save("tools.py", source, version=2))
            await trio.testing.wait_all_tasks_blocked()
            assert host.ctx.fiber.kernel.held is not None
            gate.go.set()
        assert values == [1] and project.log == [("outer", 1), ("inner", 1), "-1"]
        assert await project.value("inner") == 2


async def test_it_keeps_its_place_among_the_listeners_and_in_the_order_of_unloading(project: Project) -> None:
    source = """
    from rk_notes import log
    reload_policy = "{policy}"

    def apply(ctx):
        ctx.on("tools/pre-execute", check)
        return lambda: log.append("-{name}")

    async def check(exec, next):
        log.append("{name}")
        return await next()
    """
    project.config("a = ./a.py", "b = ./b.py", "c = ./c.py", "tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    for name in "abc":
        project.write(f"{name}.py", source, name=name, policy="stop-first" if name == "b" else "swap")
    async with project.running():
        await project.save("b.py", source, name="b", policy="stop-first")
        project.log.clear()
        await project.value()
        assert project.log == ["a", "b", "c"]
        project.log.clear()
    assert [entry for entry in project.log if "tool" not in entry] == ["-c", "-b", "-a"]


async def test_consumers_of_its_service_stop_and_come_back_with_it(project: Project) -> None:
    project.config("user = ./user.py", "maker = ./maker.py")
    project.write(
        "user.py",
        """
        from rk_notes import log
        inject = ["made"]

        def apply(ctx):
            log.append(f"+user {ctx.made}")
            ctx.effect(lambda: lambda: log.append("-user"))
        """,
    )
    maker = """
    from rk_notes import log
    reload_policy = "stop-first"

    def apply(ctx):
        ctx.effect(lambda: lambda: log.append("-maker"))
        log.append("+maker {version}")
        ctx.provide("made", {version})
    """
    project.write("maker.py", maker, version=1)
    async with project.running():
        project.log.clear()
        report = await project.save("maker.py", maker, version=2)
        assert ids(report.reloaded) == ["user", "maker"]
        assert project.log == ["-user", "-maker", "+maker 2", "+user 2"]


async def test_calls_wait_for_an_optional_plugin_too(holding: Project) -> None:
    holding.config("holder = ./holder.py\n!optional = true", "tool = ./tool.py")
    async with holding.running(), trio.open_nursery() as nursery:
        nursery.start_soon(lambda: holding.save("holder.py", HOLDER, version=2, then="await rk_notes.gate.stop()"))
        await holding.notes.gate.reached.wait()
        values: list[Any] = []

        async def call() -> None:
            values.append(await holding.value())

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        assert values == []
        holding.notes.gate.go.set()
        await holding.host.reload.rest()
        await trio.testing.wait_all_tasks_blocked()
        assert values == [1] and holding.log[-1] == ("version", 2)


async def test_a_plugin_below_another_that_has_to_stop_first_has_that_one_stop_first(project: Project) -> None:
    source = """
    import rk_notes
    from rk_notes import log

    class Child:
        reload_policy = "stop-first"

        @staticmethod
        def apply(ctx):
            assert rk_notes.held is None
            rk_notes.held = {version}
            ctx.effect(lambda: release)

    def release():
        rk_notes.held = None

    def apply(ctx):
        ctx.plugin(Child)
    """
    project.notes.held = None
    project.config("parent = ./parent.py")
    project.write("parent.py", source, version=1)
    async with project.running():
        assert (await project.save("parent.py", source, version=2)).ok and project.notes.held == 2
