"""One reload at a time; what is asked for meanwhile is put together; the latest wish wins."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from core_kit import Gate
from reload_kit import TOOL, Project, ids

from dsh_runtime import DisposedError

SLOW = TOOL.replace("def apply(ctx):", "async def apply(ctx):\n    import rk_notes\n    await rk_notes.gate.stop()")


@pytest.fixture
def slow(project: Project) -> Project:
    """A tool whose next version takes its time, and another plugin."""
    project.notes.gate = Gate()
    project.config("tool = ./tool.py", "other = ./other.py")
    project.write("tool.py", TOOL, version=1)
    project.write("other.py", "from rk_notes import log\n\ndef apply(ctx):\n    log.append('other')\n")
    return project


async def test_what_is_asked_for_meanwhile_is_done_once_and_told_to_all_who_asked(slow: Project) -> None:
    reports: list[Any] = []
    async with slow.running() as host:

        async def ask(file: str) -> None:
            reports.append(await host.reload.changed([slow.folder / file]))

        async with trio.open_nursery() as nursery:
            slow.write("tool.py", SLOW, version=2)
            nursery.start_soon(ask, "tool.py")
            await slow.notes.gate.reached.wait()
            slow.write("tool.py", TOOL, version=3)
            for file in ("tool.py", "other.py", "tool.py", "other.py"):
                nursery.start_soon(ask, file)
            await trio.testing.wait_all_tasks_blocked()
            assert reports == []
            slow.notes.gate.go.set()
        assert [ids(report.reloaded) for report in reports] == [["tool"]] + [["tool", "other"]] * 4
        assert all(report is reports[1] for report in reports[1:])
        assert await slow.value() == 3 and slow.log.count("other") == 2


async def test_a_newer_wish_makes_an_end_of_a_version_that_takes_long(slow: Project, autojump_clock: Any) -> None:
    async with slow.running() as host:
        reports: list[Any] = []

        async def ask() -> None:
            reports.append(await host.reload.changed([slow.folder / "tool.py"]))

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            slow.write("tool.py", SLOW, version=2)
            nursery.start_soon(ask)
            await slow.notes.gate.reached.wait()
            slow.write("tool.py", TOOL, version=3)
            nursery.start_soon(ask)
        assert trio.current_time() - began <= 1.5
        assert reports[0] is reports[1] and ids(reports[0].reloaded) == ["tool"]
        assert await slow.value() == 3 and "+tool 2" not in slow.log


async def test_what_a_superseded_reload_has_done_already_is_in_the_report(slow: Project, autojump_clock: Any) -> None:
    slow.config("other = ./other.py", "tool = ./tool.py")
    async with slow.running() as host:
        async with trio.open_nursery() as nursery:
            paths = [slow.write("tool.py", SLOW, version=2), slow.folder / "other.py"]
            reports: list[Any] = []

            async def ask(*paths: Any) -> None:
                reports.append(await host.reload.changed(paths))

            nursery.start_soon(ask, *paths)
            await slow.notes.gate.reached.wait()
            nursery.start_soon(ask, slow.write("tool.py", TOOL, version=3))
        assert {"other", "tool"} == set(ids(reports[0].reloaded)) and await slow.value() == 3


async def test_a_caller_that_is_cancelled_does_not_cancel_the_reload(slow: Project) -> None:
    async with slow.running() as host:
        slow.write("tool.py", SLOW, version=2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.reload.changed, [slow.folder / "tool.py"])
            await slow.notes.gate.reached.wait()
            nursery.cancel_scope.cancel()
        slow.notes.gate.go.set()
        await host.reload.rest()
        assert await slow.value() == 2


async def test_a_host_that_closes_in_the_middle_of_a_reload_unwinds_both_versions(slow: Project) -> None:
    errors: list[BaseException] = []
    async with trio.open_nursery() as nursery, slow.running() as host:
        slow.write("tool.py", SLOW, version=2)

        async def ask() -> None:
            try:
                await host.reload.changed([slow.folder / "tool.py"])
            except DisposedError as error:
                errors.append(error)

        nursery.start_soon(ask)
        await slow.notes.gate.reached.wait()
    assert [str(error) for error in errors] == ["the host unwinds"]
    assert [entry for entry in slow.log if "tool" in entry] == ["+tool 1", "-tool 1"]


async def test_a_host_that_closes_waits_for_old_versions_that_still_run(project: Project) -> None:
    source = "import rk_notes\nfrom rk_notes import log\n\ndef apply(ctx):\n    return undo\n\nasync def undo():\n"
    project.notes.gate = gate = Gate()
    project.config("a = ./a.py")
    project.write("a.py", source + "    await rk_notes.gate.stop()\n    log.append(1)\n")

    async def release() -> None:
        await trio.testing.wait_all_tasks_blocked()
        project.log.append("released")
        gate.go.set()

    async with trio.open_nursery() as nursery:
        async with project.running() as host:
            path = project.folder / "a.py"
            path.write_text(source + "    log.append(2)\n")
            assert (await host.reload.changed([path])).ok
            await gate.reached.wait()
            assert project.log == []
            nursery.start_soon(release)
        assert project.log == ["released", 1, 2]


async def test_a_tool_can_have_its_own_plugin_reloaded(project: Project) -> None:
    source = TOOL.replace("    return VERSION", "    import rk_notes\n    await rk_notes.again()\n    return VERSION")
    project.config("tool = ./tool.py")
    project.write("tool.py", source, version=1)
    async with project.running() as host:

        async def again() -> None:
            assert (await project.save("tool.py", TOOL, version=2)).ok

        project.notes.again = again
        assert await project.value() == 1
        assert await project.value() == 2
        await host.reload.rest()


async def test_a_closed_host_reloads_nothing_and_says_so(project: Project) -> None:
    project.config()
    async with project.running() as host:
        reloader = host.reload
    with pytest.raises(DisposedError):
        await reloader.refresh()


async def test_a_report_says_each_thing_on_a_line_and_whether_all_is_well(slow: Project) -> None:
    async with slow.running() as host:
        report = await slow.save("tool.py", TOOL, version=2)
        assert report.ok and not report.empty
        assert report.lines()[0].startswith("reloaded tool (") and report.lines()[0].endswith(" ms): tool.py changed")
        report = await host.reload.changed([slow.write("tool.py", "def apply(:\n"), slow.folder / "other.py"])
        heads = [line.partition(":")[0].split(" (")[0] for line in report.lines()]
        assert heads == ["reloaded other", "kept tool as it was"]
        assert not report.ok


async def test_a_fault_of_the_reloader_is_raised_to_who_asked_and_harms_nothing_else(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dsh_runtime.loader.reload.transaction as transaction

    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    async with project.running():
        with monkeypatch.context() as patch:
            patch.setattr(transaction, "top_of", lambda fiber: 1 / 0)
            patch.setattr(transaction.Stage, "affected", lambda stage: [1])
            with pytest.raises(ExceptionGroup) as caught:
                await project.save("tool.py", TOOL, version=2)
            assert caught.group_contains(ZeroDivisionError)
        assert await project.value() == 1
        assert (await project.save("tool.py", TOOL, version=3)).ok and await project.value() == 3


@pytest.mark.parametrize("policy", ["swap", "stop-first"])
async def test_a_plugin_that_somebody_has_disposed_of_is_loaded_anew(policy: str, project: Project) -> None:
    source = f"reload_policy = '{policy}'\n" + TOOL
    project.config("tool = ./tool.py")
    project.write("tool.py", source, version=1)
    async with project.running() as host:
        await project.fiber("tool").dispose()
        assert (await project.save("tool.py", source, version=2)).ok and await project.value() == 2
        await host.reload.rest()
    assert project.log == ["+tool 1", "-tool 1", "+tool 2", "-tool 2"]


async def test_a_plugin_that_is_disposed_of_while_its_new_version_is_applied_is_replaced_all_the_same(
    slow: Project,
) -> None:
    async with slow.running() as host:
        async with trio.open_nursery() as nursery:
            slow.write("tool.py", SLOW, version=2)
            nursery.start_soon(host.reload.changed, [slow.folder / "tool.py"])
            await slow.notes.gate.reached.wait()
            await slow.fiber("tool").dispose()
            slow.notes.gate.go.set()
        await host.reload.rest()
        assert await slow.value() == 2
    assert [entry for entry in slow.log if "tool" in entry] == ["+tool 1", "-tool 1", "+tool 2", "-tool 2"]
