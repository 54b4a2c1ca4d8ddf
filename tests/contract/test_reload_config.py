"""An edit of the config file reloads what its change touches and nothing else, all or nothing."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from reload_kit import NO_LOG, TOOL, Project, ids

from dsh_runtime import State, open_host

LISTENER = """
import attrs
from rk_notes import log

@attrs.frozen
class Config:
    word: str = "{name}"

def apply(ctx, config):
    async def heard(exec, next):
        log.append(config.word)
        return await next()

    ctx.on("tools/pre-execute", heard)
    ctx.effect(lambda: lambda: log.append(f"-{{config.word}}"))
"""


@pytest.fixture
def listeners(project: Project) -> Project:
    """Three listeners and a tool."""
    for name in "abcd":
        project.write(f"{name}.py", LISTENER, name=name)
    project.write("tool.py", TOOL, version=1)
    project.config("a = ./a.py", "b = ./b.py", "c = ./c.py", "tool = ./tool.py")
    return project


async def edit(project: Project, *rows: str, host: str = NO_LOG) -> Any:
    """Change the config and have the host told."""
    return await project.host.reload.changed([project.config(*rows, host=host)])


async def heard(project: Project) -> list[Any]:
    """What the listeners of one call say."""
    await project.host.reload.rest()
    project.log.clear()
    await project.value()
    return project.log.copy()


def running(project: Project) -> dict[str, Any]:
    """The fibers by plugin."""
    return {one.id: one.fiber for one in project.host.plugins}


async def test_a_changed_config_reloads_its_plugin_and_no_other(listeners: Project) -> None:
    async with listeners.running() as host:
        before = running(listeners)
        report = await edit(listeners, "a = ./a.py", "b = ./b.py\nword = 'B'", "c = ./c.py", "tool = ./tool.py")
        assert [(one.id, one.why) for one in report.reloaded] == [("b", "its config changed")] and report.ok
        after = running(listeners)
        assert [name for name in after if after[name] is not before[name]] == ["b"]
        assert host.config.rows[1].config == {"word": "B"}
        assert await heard(listeners) == ["a", "B", "c"]


async def test_rows_that_come_and_go_stand_and_fall_where_the_config_says(listeners: Project) -> None:
    async with listeners.running():
        before = running(listeners)
        report = await edit(listeners, "a = ./a.py", "d = ./d.py", "c = ./c.py", "tool = ./tool.py")
        assert (report.added, report.removed, report.reloaded) == (("d",), ("b",), ())
        after = running(listeners)
        assert list(after) == ["a", "d", "c", "tool"]
        assert all(after[name] is before[name] for name in ("a", "c", "tool"))
        assert await heard(listeners) == ["a", "d", "c"]
        assert str(before["b"].state) == "disposed"


async def test_a_new_order_counts_without_any_reload(listeners: Project) -> None:
    async with listeners.running() as host:
        before = running(listeners)
        report = await edit(listeners, "c = ./c.py", "tool = ./tool.py", "b = ./b.py", "a = ./a.py")
        assert report.ok and not report.reloaded
        assert running(listeners) == before and list(running(listeners)) == ["c", "tool", "b", "a"]
        assert await heard(listeners) == ["c", "b", "a"]
        host.ctx.on("tools/pre-execute", _late(listeners))
        assert await heard(listeners) == ["c", "b", "a", "application"]


def _late(project: Project) -> Any:
    async def late(next: Any) -> Any:
        project.log.append("application")
        return await next()

    return late


async def test_a_disabled_row_goes_and_an_enabled_one_comes_back_to_its_place(listeners: Project) -> None:
    async with listeners.running():
        off = ("a = ./a.py", "b = ./b.py\n!enabled = false", "c = ./c.py", "tool = ./tool.py")
        assert (await edit(listeners, *off)).removed == ("b",)
        assert await heard(listeners) == ["a", "c"]
        assert (await edit(listeners, *(row.replace("\n!enabled = false", "") for row in off))).added == ("b",)
        assert await heard(listeners) == ["a", "b", "c"]


async def test_a_comment_changes_nothing_but_where_things_stand(listeners: Project) -> None:
    async with listeners.running() as host:
        before = running(listeners)
        path = listeners.folder / "dsh.toml"
        path.write_text("# a comment\n\n" + path.read_text())
        report = await host.reload.changed([path])
        assert report.empty and running(listeners) == before
        assert host.config.rows[0].origin is not None and host.config.rows[0].origin.line == 5
        assert host.plugins[0].row is host.config.rows[0]


BAD_EDITS = {
    "no TOML": "[[plugin]\n",
    "an unknown key": NO_LOG + '[[plugin]]\nid = "a"\nuze = "./a.py"\n',
    "a bad setting": "[host]\nthreads = 0\n",
    "nothing at all": "\n",
}


@pytest.mark.parametrize("kind", BAD_EDITS)
async def test_a_config_that_cannot_be_read_changes_nothing_and_the_next_good_one_is_picked_up(
    kind: str, listeners: Project
) -> None:
    async with listeners.running() as host:
        before, config = running(listeners), host.config
        path = listeners.folder / "dsh.toml"
        path.write_text(BAD_EDITS[kind])
        report = await host.reload.changed([path])
        assert not report.ok and report.problems[0].location.file == str(path)
        assert running(listeners) == before and host.config is config and await heard(listeners) == ["a", "b", "c"]
        assert (await edit(listeners, "a = ./a.py\nword = 'A'", "tool = ./tool.py")).ok
        assert await heard(listeners) == ["A"]


async def test_a_plugin_that_changes_the_current_folder_moves_no_config(
    listeners: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    listeners.write("d.py", f"import os\n\ndef apply(ctx):\n    os.chdir({str(other)!r})\n")
    monkeypatch.chdir(listeners.folder)
    listeners.config("a = ./a.py", "d = ./d.py")
    async with open_host("dsh.toml") as host:
        assert host.reload.watched() == {listeners.folder}
        path = listeners.config("a = ./a.py\nword = 'A'", "d = ./d.py")
        report = await host.reload.changed([path])
        assert report.ok and ids(report.reloaded) == ["a"]
        assert [plugin.row.config for plugin in host.plugins if plugin.id == "a"] == [{"word": "A"}]


BAD_ROWS = {
    "refused config": ("c = ./c.py\nword = 3", "expected a string; got an integer, 3"),
    "missing file": ("c = ./nowhere.py", "does not exist"),
    "apply fails": ("d = ./broken.py", "no good"),
    "missing service": ("d = ./waiting.py", "waits for the service 'nothing'"),
    "clash": ("d = ./clash.py", "which plugin 'tool' has registered already"),
}


@pytest.mark.parametrize("kind", BAD_ROWS)
async def test_an_edit_of_which_one_part_fails_changes_nothing_at_all(kind: str, listeners: Project) -> None:
    row, text = BAD_ROWS[kind]
    listeners.write("broken.py", "def apply(ctx):\n    raise ValueError('no good')\n")
    listeners.write("waiting.py", "inject = ['nothing']\n\ndef apply(ctx): ...\n")
    listeners.write("clash.py", TOOL, version=2)
    async with listeners.running() as host:
        before, config = running(listeners), host.config
        rows = ("tool = ./tool.py", "a = ./a.py\nword = 'A'", row)
        report = await edit(listeners, *rows, host="[host]\nthreads = 7\n" + NO_LOG)
        assert not report.ok and not report.reloaded and not report.added and not report.removed
        assert any(text in line for line in report.lines()), report.lines()
        assert running(listeners) == before and host.config is config and await heard(listeners) == ["a", "b", "c"]
        assert listeners.kernel.root.ctx.tools.machine.settings.threads == 40


async def test_an_edit_that_failed_is_tried_again_when_a_source_is_mended(listeners: Project) -> None:
    listeners.write("broken.py", "def apply(ctx):\n    raise ValueError('no good')\n")
    async with listeners.running():
        rows = ("a = ./a.py\nword = 'A'", "broken = ./broken.py", "tool = ./tool.py")
        assert not (await edit(listeners, *rows)).ok
        report = await listeners.save("broken.py", LISTENER, name="mended")
        assert report.ok and report.added == ("broken",) and ids(report.reloaded) == ["a"]
        assert await heard(listeners) == ["A", "mended"]


async def test_a_source_and_the_config_that_only_go_together_are_put_in_force_together(listeners: Project) -> None:
    async with listeners.running() as host:
        renamed = LISTENER.replace("word: str", "term: str").replace("config.word", "config.term")
        source = listeners.write("a.py", renamed, name="a")
        path = listeners.config("a = ./a.py\nterm = 'new'", "tool = ./tool.py")
        report = await host.reload.changed([path, source])
        assert report.ok and ids(report.reloaded) == ["a"] and await heard(listeners) == ["new"]


async def test_a_bad_config_does_not_hold_up_a_good_source(listeners: Project) -> None:
    async with listeners.running() as host:
        path = listeners.folder / "dsh.toml"
        path.write_text("[[plugin]\n")
        report = await host.reload.changed([path, listeners.write("tool.py", TOOL, version=2)])
        assert report.problems and ids(report.reloaded) == ["tool"] and await listeners.value() == 2


async def test_a_setting_that_a_running_host_can_take_up_is_in_force_at_once(listeners: Project) -> None:
    rows = ("a = ./a.py", "b = ./b.py", "c = ./c.py", "tool = ./tool.py")
    changed = "threads = 7\ndrain_timeout = 3\nteardown_timeout = 4\nmax_depth = 50\napproval = 'never'\n"
    async with listeners.running() as host:
        before = running(listeners)
        report = await edit(listeners, *rows, host=f"[host]\n{changed}reload_wait = 2\npolicy_timeout = 9\n{NO_LOG}")
        assert report.empty and running(listeners) == before
        machine = host.ctx.tools.machine
        assert (machine.threads.count, machine.settings.drain_timeout, machine.settings.max_depth) == (7, 3, 50)
        assert (machine.settings.policy_timeout, machine.settings.reload_wait) == (9, 2)
        assert (listeners.kernel.teardown_timeout, host.settings.approval) == (4, "never")


async def test_a_setting_that_needs_a_restart_is_named_and_nothing_of_the_edit_is_in_force(listeners: Project) -> None:
    async with listeners.running() as host:
        before, config = running(listeners), host.config
        rows = ("a = ./a.py\nword = 'A'", "tool = ./tool.py")
        report = await edit(listeners, *rows, host='[host]\npresentation = "both"\n[host.log]\nenabled = true\n')
        (restart,) = report.restart
        assert restart.subject == "[host] presentation, [host] log.enabled" and "nothing of the edit" in restart.why
        assert running(listeners) == before and host.config is config
        assert (await listeners.save("tool.py", TOOL, version=2)).ok and await listeners.value() == 2
        assert (await edit(listeners, *rows)).ok and await heard(listeners) == ["A"]


async def test_an_edit_that_touches_a_plugin_which_opts_out_asks_for_a_restart_as_a_whole(listeners: Project) -> None:
    listeners.write("b.py", "reload_policy = 'restart'\n" + LISTENER.format(name="b"))
    rows = ("a = ./a.py\nword = 'A'", "c = ./c.py", "tool = ./tool.py")
    async with listeners.running():
        for more in ((), ("b = ./b.py\nword = 'B'",)):
            report = await edit(listeners, *rows, *more)
            assert "b" in [one.subject for one in report.restart] and not report.reloaded and not report.removed
            assert await heard(listeners) == ["a", "b", "c"]


async def test_an_edit_of_what_has_to_stop_first_is_all_or_nothing_too(project: Project) -> None:
    holder = """
    import attrs, rk_notes
    from rk_notes import log
    reload_policy = "stop-first"

    @attrs.frozen
    class Config:
        port: int = 1

    def apply(ctx, config):
        log.append(f"+{config.port}")
        assert rk_notes.port is None
        rk_notes.port = config.port
        ctx.effect(lambda: release)
        if config.port == 13:
            raise ValueError("unlucky")

    def release():
        rk_notes.port = None
    """
    project.notes.port = None
    project.write("holder.py", holder)
    project.write("tool.py", TOOL, version=1)
    project.write("a.py", LISTENER, name="a")
    project.config("holder = ./holder.py", "tool = ./tool.py")
    async with project.running():
        report = await edit(project, "a = ./a.py", "holder = ./holder.py\nport = 2", "tool = ./tool.py")
        assert report.ok and report.added == ("a",) and project.notes.port == 2
        assert await heard(project) == ["a"]
        report = await edit(project, "tool = ./tool.py", "holder = ./holder.py\nport = 13")
        assert "unlucky" in report.lines()[0] and project.notes.port == 2
        assert await heard(project) == ["a"] and list(running(project)) == ["a", "holder", "tool"]
        assert all(fiber.state is State.ACTIVE for fiber in running(project).values())


async def test_an_included_file_and_a_value_file_count_as_the_config(listeners: Project) -> None:
    secret = listeners.write("word.txt", "one")
    row = '[[plugin]]\nid = "a"\nuse = "./a.py"\n[plugin.config]\nword = "${file:word.txt}"\n'
    base = listeners.write("base.toml", NO_LOG + row)
    listeners.write("dsh.toml", 'include = ["base.toml"]\n[[plugin]]\nid = "tool"\nuse = "./tool.py"\n')
    async with listeners.running() as host:
        assert await heard(listeners) == ["one"]
        secret.write_text("two")
        assert ids((await host.reload.changed([secret])).reloaded) == ["a"] and await heard(listeners) == ["two"]
        base.write_text(NO_LOG)
        assert (await host.reload.changed([base])).removed == ("a",) and await heard(listeners) == []
        assert {listeners.folder} <= host.reload.watched()


async def test_removing_a_plugin_whose_service_others_need_is_refused_naming_both(project: Project) -> None:
    project.write("maker.py", "def apply(ctx):\n    ctx.provide('made', 1)\n")
    project.write("user.py", "inject = ['made']\n\ndef apply(ctx): ...\n")
    project.config("maker = ./maker.py", "user = ./user.py")
    async with project.running():
        report = await edit(project, "user = ./user.py")
        assert "plugin 'user' waits for the service 'made'" in report.lines()[0] and not report.removed
        assert list(running(project)) == ["maker", "user"]
        assert (await edit(project)).removed == ("maker", "user") and not running(project)


async def test_pins_that_the_code_does_not_have_refuse_an_edit_and_a_reload(listeners: Project) -> None:
    async with listeners.running():
        rows = ("a = ./a.py", "tool = ./tool.py")
        pinned = '[pins.tool]\ndigest = "sha256:' + "0" * 64 + '"\n'
        report = await edit(listeners, *rows, host=NO_LOG + pinned)
        assert "is not what was pinned" in "\n".join(report.lines())
        assert list(running(listeners)) == ["a", "b", "c", "tool"]


async def test_calls_go_on_during_edits_and_each_sees_one_order(listeners: Project) -> None:
    orders = ["abc", "cba", "bd", "dcba", ""]
    async with listeners.running():
        async with trio.open_nursery() as nursery:
            done = False

            async def keep_calling() -> None:
                while not done:
                    assert await listeners.value() == 1

            for _ in range(10):
                nursery.start_soon(keep_calling)
            for order in orders * 3:
                rows = [f"{name} = ./{name}.py" for name in order]
                assert (await edit(listeners, *rows, "tool = ./tool.py")).ok
            done = True
        for order in orders:
            await edit(listeners, *(f"{name} = ./{name}.py" for name in order), "tool = ./tool.py")
            assert await heard(listeners) == list(order)
