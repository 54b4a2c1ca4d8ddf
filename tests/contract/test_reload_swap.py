"""A reload puts a new version in the place of the old one: in one step, at the same position, or not at all."""

from __future__ import annotations

import gc
import logging
import weakref
from typing import Any

import pytest
import trio
import trio.testing
from reload_kit import TOOL, Project, ids

from dsh_runtime import AbortController, State, ToolExecutionInput

POLICY = """
from rk_notes import log
from dsh_runtime import hookimpl

@hookimpl
async def tools_pre_execute(exec, next):
    log.append("{name} {version}")
    return await next()
"""


async def test_the_next_call_runs_on_the_new_version_and_the_report_says_what_was_reloaded(project: Project) -> None:
    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    async with project.running():
        assert await project.value() == 1
        report = await project.save("tool.py", TOOL, version=2)
        assert await project.value() == 2
        (reloaded,) = report.reloaded
        assert (reloaded.id, reloaded.why, report.ok) == ("tool", "tool.py changed", True)
        assert reloaded.milliseconds > 0


async def test_a_call_in_flight_finishes_on_the_version_that_it_started_with(project: Project) -> None:
    slow = """
    import trio
    from rk_notes import log, gate
    from dsh_runtime import ToolOutput, define_tool, hookimpl

    VERSION = {version}

    def apply(ctx):
        ctx.tools.register(define_tool(
            name="version", description="d", parameters={{}}, output=ToolOutput(schema={{"type": "integer"}}),
            execute=execute, finalize_content=lambda exec, result: log.append(f"finalize {{VERSION}}"),
        ))
        ctx.effect(lambda: lambda: log.append(f"gone {{VERSION}}"))

    inject = ["tools"]

    async def execute(args, exec):
        await gate.stop()
        return VERSION

    @hookimpl
    async def tools_post_execute(exec, result, next):
        log.append(f"post {{VERSION}}")
        return await next()

    @hookimpl
    def tools_result(exec, result):
        log.append(f"result {{VERSION}}")
    """
    from core_kit import Gate

    project.notes.gate = gate = Gate()
    project.config("tool = ./tool.py")
    project.write("tool.py", slow, version=1)
    async with project.running() as host:
        async with trio.open_nursery() as nursery:
            results: list[Any] = []

            async def call() -> None:
                results.append(await project.value())

            nursery.start_soon(call)
            await gate.reached.wait()
            await project.save("tool.py", slow, version=2)
            assert project.log == []
            gate.go.set()
        await host.reload.rest()
        assert results == [1]
        assert project.log == ["post 1", "finalize 1", "result 1", "gone 1"]
        project.log.clear()
        assert await project.value() == 2
        assert project.log == ["post 2", "finalize 2", "result 2"]


async def test_a_reloaded_plugin_keeps_its_place_among_the_listeners(project: Project) -> None:
    project.config("a = ./a.py", "b = ./b.py", "c = ./c.py", "tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    for name in "abc":
        project.write(f"{name}.py", POLICY, name=name, version=1)
    async with project.running():
        for version in (2, 3):
            for name in "bac":
                await project.save(f"{name}.py", POLICY, name=name, version=version)
        project.log.clear()
        await project.value()
        assert project.log == ["a 3", "b 3", "c 3"]


async def test_a_reloaded_plugin_keeps_its_place_in_the_order_of_unloading(project: Project) -> None:
    source = """
    from rk_notes import log

    def apply(ctx):
        return lambda: log.append(("{name}", {version}))
    """
    project.config("a = ./a.py", "b = ./b.py", "c = ./c.py")
    for name in "abc":
        project.write(f"{name}.py", source, name=name, version=1)
    async with project.running() as host:
        await project.save("b.py", source, name="b", version=2)
        await host.reload.rest()
        project.log.clear()
    assert project.log == [("c", 1), ("b", 2), ("a", 1)]


async def test_no_call_runs_without_a_policy_or_with_two_versions_of_it(project: Project) -> None:
    project.config("policy = ./policy.py", "tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    project.write("policy.py", POLICY, name="policy", version=0)
    async with project.running():
        for version in range(1, 20):
            project.log.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda n: project.save("policy.py", POLICY, name="policy", version=n), version)
                for _ in range(20):
                    await project.value()
            heard = [entry for entry in project.log if entry.startswith("policy")]
            assert len(heard) == 20 and set(heard) <= {f"policy {version - 1}", f"policy {version}"}


BROKEN = {
    "syntax": ("def apply(ctx:\n    pass\n", 1, "SyntaxError"),
    "import": ("import trio\nimport rk_no_such_module\n\ndef apply(ctx): ...\n", 2, "rk_no_such_module"),
    "raises while imported": ("x = 1\ny = x / 0\n\ndef apply(ctx): ...\n", 2, "ZeroDivisionError"),
    "exits while imported": ("import sys\nsys.exit(3)\n\ndef apply(ctx): ...\n", 2, "SystemExit"),
    "apply raises": ("def apply(ctx):\n    raise ValueError('no good')\n", 2, "no good"),
    "apply exits": ("import sys\n\ndef apply(ctx):\n    sys.exit(3)\n", 4, "cannot end the host"),
    "no plugin": ("x = 1\n", None, "is no plugin"),
    "unknown hook": (
        "from dsh_runtime import hookimpl\n\n@hookimpl\ndef tools_pre_exec(exec): ...\n\ndef apply(ctx): ...\n",
        None,
        "did you mean 'tools_pre_execute'",
    ),
    "clash": (
        "inject = ['tools']\n\ndef apply(ctx):\n    ctx.tools.register(ctx.tools.get('other'))\n",
        4,
        "which plugin 'other' has registered already",
    ),
    "missing service": ("inject = ['nothing_there']\n\ndef apply(ctx): ...\n", None, "nothing_there"),
    "a child fails": (
        "def apply(ctx):\n    ctx.plugin(child)\n\ndef child(ctx):\n    raise ValueError('the child')\n",
        5,
        "the child",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_version_changes_nothing_is_told_with_its_line_and_the_next_good_save_takes(
    kind: str, project: Project
) -> None:
    source, line, text = BROKEN[kind]
    project.config("other = ./other.py", "tool = ./tool.py")
    project.write("other.py", TOOL.replace('"version"', '"other"'), version=0)
    project.write("tool.py", TOOL, version=1)
    async with project.running():
        before = project.fiber("tool")
        project.log.clear()
        report = await project.save("tool.py", source)
        assert not report.ok and ids(report.kept) == ["tool"] and not report.reloaded
        (problem,) = report.kept[0].problems
        assert text in problem.message
        if line is not None:
            assert (problem.location.file, problem.location.line) == (str(project.folder / "tool.py"), line)
        assert project.fiber("tool") is before and before.state is State.ACTIVE
        assert await project.value() == 1 and project.log == []
        assert (await project.save("tool.py", TOOL, version=2)).ok
        assert await project.value() == 2


async def test_a_version_that_refuses_the_config_changes_nothing_and_is_told_with_the_place_in_the_config(
    project: Project,
) -> None:
    strict = "import attrs\n\n@attrs.frozen\nclass Config:\n    size: {kind}\n\ndef apply(ctx, config): ...\n"
    project.config("tool = ./tool.py\nsize = 3")
    project.write("tool.py", strict, kind="int")
    async with project.running():
        before = project.fiber("tool")
        report = await project.save("tool.py", strict, kind="str")
        (problem,) = report.kept[0].problems
        assert "expected a string; got an integer, 3" in problem.message
        assert (problem.location.file, problem.location.line) == (str(project.folder / "dsh.toml"), 7)
        assert project.fiber("tool") is before
        assert (await project.save("tool.py", strict, kind="int")).ok


async def test_a_version_whose_apply_hangs_is_given_up_at_the_deadline_naming_where_it_waits(
    project: Project, autojump_clock: Any
) -> None:
    project.config("tool = ./tool.py", host="[host]\nreload_timeout = 7\n[host.log]\nenabled = false\n")
    project.write("tool.py", TOOL, version=1)
    async with project.running():
        began = trio.current_time()
        report = await project.save("tool.py", "import trio\n\nasync def apply(ctx):\n    await trio.sleep_forever()\n")
        (problem,) = report.kept[0].problems
        assert trio.current_time() - began == 7
        assert "still loading after 7 s (reload_timeout)" in problem.message and problem.location.line == 4
        assert await project.value() == 1
        assert (await project.save("tool.py", TOOL, version=2)).ok and await project.value() == 2


async def test_an_apply_that_waits_for_its_own_task_is_told_to_stop_first(
    project: Project, autojump_clock: Any
) -> None:
    waiting = """
    import trio

    async def apply(ctx):
        ready = trio.Event()
        ctx.start_soon(serve, ready)
        await ready.wait()

    async def serve(ready):
        ready.set()
    """
    project.config("tool = ./tool.py")
    project.write("tool.py", waiting)
    async with project.running():
        report = await project.save("tool.py", waiting + "\n")
        assert "its task 'serve' begins only when" in report.lines()[0] and "'stop-first'" in report.lines()[0]
        report = await project.save("tool.py", 'reload_policy = "stop-first"\n' + project_source(waiting))
        assert report.ok


def project_source(source: str) -> str:
    """A source as it stands in a file."""
    import textwrap

    return textwrap.dedent(source)


async def test_a_keyboard_interrupt_of_a_plugins_own_does_not_end_the_host(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where somebody else than Python handles the signal, as ``dsh-run`` does, only code can have raised it."""
    import signal

    monkeypatch.setattr(signal, "getsignal", lambda number: print)
    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    async with project.running():
        for source in ("raise KeyboardInterrupt\n", "def apply(ctx):\n    raise KeyboardInterrupt\n"):
            report = await project.save("tool.py", source)
            assert "a plugin cannot end the host" in report.kept[0].problems[0].message
            assert await project.value() == 1


async def test_tasks_of_a_new_version_begin_at_the_swap_and_those_of_a_failed_one_never(project: Project) -> None:
    source = """
    import trio
    from rk_notes import log, gate

    async def apply(ctx):
        ctx.start_soon(tick)
        await trio.sleep(0)
        log.append("applied {version}")
        if {fails}:
            raise ValueError("no")

    async def tick():
        log.append("tick {version}")
        await trio.sleep_forever()
    """
    project.notes.gate = None
    project.config("a = ./a.py")
    project.write("a.py", source, version=1, fails=False)
    async with project.running() as host:
        await trio.testing.wait_all_tasks_blocked()
        assert not (await project.save("a.py", source, version=2, fails=True)).ok
        assert (await project.save("a.py", source, version=3, fails=False)).ok
        await trio.testing.wait_all_tasks_blocked()
        assert [entry for entry in project.log if entry.startswith("tick")] == ["tick 1", "tick 3"]
        assert project.log.index("applied 3") < project.log.index("tick 3")
        await host.reload.rest()


async def test_a_failing_undo_of_the_old_version_is_logged_and_the_new_one_is_in_force(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    broken = "def apply(ctx):\n    ctx.effect(lambda: boom)\n\ndef boom():\n    raise ValueError('undo')\n"
    project.config("tool = ./tool.py")
    project.write("tool.py", broken)
    async with project.running() as host:
        with caplog.at_level(logging.ERROR, "dsh.fibers"):
            assert (await project.save("tool.py", TOOL, version=2)).ok
            await host.reload.rest()
        assert "undoing plugin 'tool' failed" in caplog.text
        assert await project.value() == 2 and not project.kernel.retired.fibers


async def test_the_swap_is_told_once_as_a_state_of_the_new_version(project: Project) -> None:
    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    async with project.running() as host:
        told: list[Any] = []
        host.ctx.on("plugin/state", lambda fiber, previous: told.append((fiber, str(fiber.state), previous)))
        await project.save("tool.py", "def apply(ctx):\n    1 / 0\n")
        assert told == []
        await project.save("tool.py", TOOL, version=2)
        await host.reload.rest()
        assert told == [(project.fiber("tool"), "active", "active")]


async def test_tools_change_is_told_at_the_swap(project: Project) -> None:
    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    async with project.running() as host:
        heard: list[Any] = []
        host.ctx.on("tools/change", lambda: heard.append(host.ctx.tools.get("version").execute))
        old = host.ctx.tools.get("version").execute
        await project.save("tool.py", TOOL, version=2)
        assert len(heard) == 1 and heard[0] is not old


async def test_an_old_version_that_goes_on_in_a_call_past_the_deadline_is_aborted(
    project: Project, autojump_clock: Any
) -> None:
    source = TOOL.replace("return VERSION", "await trio.sleep_forever()").replace("VERSION =", "import trio\nVERSION =")
    project.config("tool = ./tool.py", host="[host]\ndrain_timeout = 5\n[host.log]\nenabled = false\n")
    project.write("tool.py", source, version=1)
    async with project.running() as host, trio.open_nursery() as nursery:
        results: list[Any] = []

        async def call() -> None:
            results.append(await project.call())

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        assert (await project.save("tool.py", TOOL, version=2)).ok
        assert await project.value() == 2
        await host.reload.rest()
        assert trio.current_time() - began == 5
        assert results[0].error.info.code == "ABORTED" and "'tool' unloads" in results[0].error.message


async def test_a_person_who_is_being_asked_answers_on_the_channel_that_asked(project: Project) -> None:
    """The channel's old version is not undone while its question is open."""
    from core_kit import Gate

    channel = """
    import rk_notes
    from rk_notes import log

    def apply(ctx):
        ctx.on("approval/request", ask)
        ctx.effect(lambda: lambda: log.append("channel {version} closed"))

    async def ask(request, next):
        await rk_notes.gate.stop()
        log.append("answered on {version}")
        return "allowed-once"
    """
    asks = "from dsh_runtime import Ask, hookimpl\n\n@hookimpl\ndef tools_pre_execute(exec):\n    return Ask('sure?')\n"
    project.notes.gate = gate = Gate()
    project.config("asks = ./asks.py", "channel = ./channel.py", "tool = ./tool.py")
    project.write("asks.py", asks)
    project.write("channel.py", channel, version=1)
    project.write("tool.py", TOOL, version=1)
    async with project.running() as host:
        agent = host.ctx.scope()
        values: list[Any] = []

        async def call() -> None:
            signal = AbortController().signal
            result = await host.ctx.tools.execute(ToolExecutionInput("c", "version", {}, signal, agent=agent.key))
            values.append(result.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await gate.reached.wait()
            assert (await project.save("channel.py", channel, version=2)).ok
            await trio.testing.wait_all_tasks_blocked()
            assert "channel 1 closed" not in project.log
            gate.go.set()
        await host.reload.rest()
        assert values == [1] and project.log[-2:] == ["answered on 1", "channel 1 closed"]


async def test_a_scope_that_makes_no_call_any_more_keeps_no_old_version_alive(project: Project) -> None:
    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    async with project.running() as host:
        agent = host.ctx.scope()
        call = ToolExecutionInput("c", "version", {}, AbortController().signal, agent=agent.key)
        assert (await host.ctx.tools.execute(call)).value == 1
        old = weakref.ref(project.fiber("tool"))
        await project.save("tool.py", TOOL, version=2)
        await host.reload.rest()
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        assert old() is None and await project.value() == 2


async def test_a_sub_call_of_a_call_in_flight_hears_the_new_policy_and_not_both(project: Project) -> None:
    from core_kit import Gate

    outer = """
    import rk_notes
    from dsh_runtime import AbortController, ToolExecutionInput, ToolOutput, define_tool

    inject = ["tools"]

    def apply(ctx):
        async def outer(args, exec):
            await rk_notes.gate.stop()
            call = ToolExecutionInput("s", "version", {}, AbortController().signal, parent=exec.token)
            return (await ctx.tools.execute(call)).value

        ctx.tools.register(define_tool(
            name="outer", description="d", parameters={}, output=ToolOutput(schema={"type": "integer"}), execute=outer,
        ))
    """
    project.notes.gate = gate = Gate()
    project.config("policy = ./policy.py", "tool = ./tool.py", "outer = ./outer.py")
    policy = POLICY.replace("{name}", "{{exec.name}}").replace('log.append("', 'log.append(f"')
    project.write("policy.py", policy, version=1)
    project.write("tool.py", TOOL, version=1)
    project.write("outer.py", outer)
    async with project.running(), trio.open_nursery() as nursery:
        nursery.start_soon(project.value, "outer")
        await gate.reached.wait()
        project.log.clear()
        await project.save("policy.py", policy, version=2)
        gate.go.set()
        await project.host.reload.rest()
        assert project.log == ["version 2"]


async def test_a_plugin_that_is_applied_aside_sees_the_tools_as_they_are_to_be(project: Project) -> None:
    more = """
def look(ctx):
    inner = ctx.scope("inner")
    inner.ctx.tools.restrict(deny=["version"])
    log.append(sorted(tool["name"] for tool in ctx.tools.schemas()))
    log.append([ctx.tools.owner(name) for name in ("version", "other", "gone")])
    log.append(ctx.tools.get("version", "inner"))
"""
    looking = TOOL.replace("    ))\n", "    ))\n    look(ctx)\n").format(version=2) + more
    project.config("tool = ./tool.py", "old = ./old.py")
    project.write("tool.py", TOOL.replace('"version"', '"gone"'), version=1)
    project.write("old.py", TOOL.replace('"version"', '"other"'), version=0)
    async with project.running() as host:
        path = project.folder / "tool.py"
        path.write_text(looking)
        assert (await host.reload.changed([path])).ok
        seen = [entry for entry in project.log if not isinstance(entry, str)]
        assert seen == [["other", "version"], ["tool", "old", None], None]
