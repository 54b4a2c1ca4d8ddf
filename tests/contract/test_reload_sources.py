"""A change reloads the plugins that depend on it, by what they really import, and no others."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from reload_kit import TOOL, Project, ids

from dsh_runtime import HostError

#: A plugin that says what it gets from a helper.
USER = """
from rk_notes import log
{imports}

def apply(ctx):
    log.append(("{name}", {value}))
"""


@pytest.fixture
def package(project: Project) -> Project:
    """A plugin that is a package: what it says comes from a sub-module, by way of another one."""
    project.config("pack = rk_pack")
    head = "from rk_notes import log\nfrom .mid import word\n\n"
    project.write("rk_pack/__init__.py", head + "def apply(ctx):\n    log.append(word)\n")
    project.write("rk_pack/mid.py", "from rk_pack.deep import WORD as word\n")
    project.write("rk_pack/deep.py", "WORD = 'one'\n")
    return project


async def test_two_edits_within_one_second_of_the_same_length_both_count(project: Project) -> None:
    project.config("tool = ./tool.py")
    project.write("tool.py", TOOL, version=1)
    async with project.running():
        for version in range(2, 9):
            path = project.write("tool.py", TOOL, version=version)
            os.utime(path, (1_000_000_000, 1_000_000_000))
            assert (await project.host.reload.changed([path])).ok
            assert await project.value() == version


async def test_an_edit_of_a_sub_module_counts_whatever_cached_bytecode_says(package: Project) -> None:
    path = package.folder / "rk_pack/deep.py"
    os.utime(path, (1_000_000_000, 1_000_000_000))
    async with package.running():
        package.write("rk_pack/deep.py", "WORD = 'two'\n")
        os.utime(path, (1_000_000_000, 1_000_000_000))
        report = await package.host.reload.changed([path])
        assert (ids(report.reloaded), report.reloaded[0].why) == (["pack"], "deep.py changed")
        assert package.log == ["one", "two"]


async def test_a_package_comes_afresh_as_a_whole_so_that_versions_share_nothing(project: Project) -> None:
    """A registry that sub-modules fill when they are imported would hold the entries of both versions."""
    deep = "from rk_whole.registry import found\nfound.append(1)\nWORD = len(found)\n"
    main = "from rk_notes import log\nfrom rk_whole.deep import WORD\n\ndef apply(ctx):\n    log.append(WORD)\n"
    project.config("whole = rk_whole.main")
    project.write("rk_whole/__init__.py", "")
    project.write("rk_whole/registry.py", "found = []\n")
    project.write("rk_whole/deep.py", deep)
    project.write("rk_whole/main.py", main)
    async with project.running():
        await project.save("rk_whole/deep.py", deep + "\n")
        await project.save("rk_whole/main.py", main + "\n")
        assert project.log == [1, 1, 1]


async def test_a_sub_module_that_is_added_renamed_or_deleted_counts(package: Project) -> None:
    folder = package.folder / "rk_pack"
    async with package.running() as host:
        new = package.write("rk_pack/extra.py", "WORD = 'extra'\n")
        mid = package.write("rk_pack/mid.py", "from rk_pack.extra import WORD as word\n")
        assert (await host.reload.changed([new, mid])).ok
        (folder / "extra.py").rename(folder / "other.py")
        mid = package.write("rk_pack/mid.py", "from rk_pack.other import WORD as word\n")
        assert (await host.reload.changed([folder / "extra.py", folder / "other.py", mid])).ok
        assert "rk_pack.extra" not in sys.modules
        (folder / "other.py").unlink()
        report = await host.reload.changed([folder / "other.py"])
        assert "No module named 'rk_pack.other'" in report.kept[0].problems[0].message
        assert report.kept[0].problems[0].location.file == str(folder / "mid.py")
        assert (await package.save("rk_pack/mid.py", "word = 'none'\n")).ok
        assert package.log == ["one", "extra", "extra", "none"]


async def test_a_sub_module_that_becomes_a_package_counts(package: Project) -> None:
    folder = package.folder / "rk_pack"
    async with package.running() as host:
        (folder / "deep.py").unlink()
        new = package.write("rk_pack/deep/__init__.py", "WORD = 'package'\n")
        assert (await host.reload.changed([folder / "deep.py", new.parent, new])).ok
        assert package.log == ["one", "package"]


async def test_a_new_file_in_a_package_that_looks_for_its_modules_counts(project: Project) -> None:
    project.config("pack = rk_find")
    project.write(
        "rk_find/__init__.py",
        """
        import importlib, pkgutil
        from rk_notes import log

        names = sorted(info.name for info in pkgutil.iter_modules(__path__))
        for name in names:
            importlib.import_module(f"{__name__}.{name}")

        def apply(ctx):
            log.append(names)
        """,
    )
    project.write("rk_find/one.py", "")
    async with project.running() as host:
        two = project.write("rk_find/two.py", "x = 1\n")
        assert ids((await host.reload.changed([two])).reloaded) == ["pack"]
        assert ids((await project.save("rk_find/two.py", "x = 2\n")).reloaded) == ["pack"]
        assert project.log == [["one"], ["one", "two"], ["one", "two"]]


async def test_a_file_that_nobody_has_loaded_reloads_nobody(package: Project) -> None:
    package.write("rk_pack/script.py", "print('by hand')\n")
    async with package.running():
        assert (await package.save("rk_pack/script.py", "print('again')\n")).empty
        assert (await package.save("elsewhere.py", "")).empty
        assert (await package.save("rk_pack/notes.txt", "words")).empty


async def test_a_new_file_that_somebody_would_have_imported_counts(project: Project) -> None:
    project.config("user = ./user.py", "other = ./other.py")
    imports = "try:\n    from rk_later import VALUE\nexcept ImportError:\n    VALUE = None"
    project.write("user.py", USER, name="user", imports=imports, value="VALUE")
    project.write("other.py", USER, name="other", imports="", value="0")
    async with project.running():
        report = await project.save("rk_later.py", "VALUE = 3\n")
        assert ids(report.reloaded) == ["user"]
        assert project.log == [("user", None), ("other", 0), ("user", 3)]


HOLDERS = {
    "a module": ("import rk_help", "rk_help.VALUE"),
    "a name": ("from rk_help import VALUE", "VALUE"),
    "a star": ("from rk_help import *", "VALUE"),
    "in a function": ("def value():\n    from rk_help import VALUE\n    return VALUE", "value()"),
    "by way of another": ("from rk_between import other", "other"),
    "in a branch": ("if True:\n    try:\n        from rk_help import VALUE\n    finally:\n        pass", "VALUE"),
    "by name at run time": ("import importlib\nhelp = importlib.import_module('rk_' + 'help')", "help.VALUE"),
}


@pytest.mark.parametrize("how", HOLDERS)
async def test_whoever_holds_something_of_a_helper_is_reloaded_with_it_and_nobody_else(
    how: str, project: Project
) -> None:
    imports, value = HOLDERS[how]
    project.write("rk_help.py", "VALUE = 1\n")
    project.write("rk_between.py", "import rk_help\nother = rk_help.VALUE\n")
    project.config("holder = ./holder.py", "stranger = ./stranger.py")
    project.write("holder.py", USER, name="holder", imports=imports, value=value)
    for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rk_help"
    project.write("stranger.py", USER, name="stranger", imports=for_types, value="0")
    async with project.running():
        stranger = project.fiber("stranger")
        report = await project.save("rk_help.py", "VALUE = 2\n")
        assert (ids(report.reloaded), report.reloaded[0].why) == (["holder"], "rk_help.py changed")
        assert project.log == [("holder", 1), ("stranger", 0), ("holder", 2)]
        assert project.fiber("stranger") is stranger


async def test_two_plugins_that_share_a_helper_are_reloaded_together_or_not_at_all(project: Project) -> None:
    project.write("rk_help.py", "VALUE = 1\n")
    project.config("one = ./one.py", "two = ./two.py")
    project.write("one.py", USER, name="one", imports="import rk_help", value="id(rk_help)")
    project.write("two.py", USER, name="two", imports="import rk_help", value="id(rk_help), rk_help.VALUE")
    async with project.running():
        helper = sys.modules["rk_help"]
        report = await project.save("rk_help.py", "VALUE_GONE = 2\n")
        assert ids(report.kept) == ["one", "two"]
        assert "together with 'two', which failed" in report.kept[0].problems[0].message
        assert "'VALUE'" in report.kept[1].problems[0].message
        assert sys.modules["rk_help"] is helper
        project.log.clear()
        report = await project.save("rk_help.py", "VALUE = 3\n")
        assert ids(report.reloaded) == ["one", "two"]
        new = id(sys.modules["rk_help"])
        assert project.log == [("one", new), ("two", new, 3)] and new != id(helper)


async def test_a_helper_that_has_not_changed_stays_one_and_the_same_for_all(project: Project) -> None:
    project.write("rk_help.py", "VALUE = 1\n")
    project.config("one = ./one.py", "two = ./two.py")
    for name in ("one", "two"):
        project.write(f"{name}.py", USER, name=name, imports="import rk_help", value="id(rk_help)")
    async with project.running():
        helper = id(sys.modules["rk_help"])
        report = await project.save("one.py", USER, name="one", imports="import rk_help", value="-id(rk_help)")
        assert ids(report.reloaded) == ["one"] and project.log[-1] == ("one", -helper)


async def test_plugins_of_one_package_are_reloaded_apart(project: Project) -> None:
    project.write("rk_both/__init__.py", "")
    project.write("rk_both/shared.py", "")
    project.config("one = rk_both.one", "two = rk_both.two")
    for name in ("one", "two"):
        project.write(f"rk_both/{name}.py", USER, name=name, imports="from . import shared", value="id(shared)")
    async with project.running():
        two, shared = sys.modules["rk_both.two"], sys.modules["rk_both.shared"]
        report = await project.save("rk_both/one.py", USER, name="one", imports="from . import shared", value="1")
        assert ids(report.reloaded) == ["one"]
        assert sys.modules["rk_both.two"] is two and sys.modules["rk_both.shared"] is shared
        one = sys.modules["rk_both.one"]
        assert not (await project.save("rk_both/one.py", "def apply(:\n")).ok
        assert sys.modules["rk_both.one"] is one is sys.modules["rk_both"].one
        await project.save("rk_both/one.py", USER, name="one", imports="from . import shared", value="1")
        report = await project.save("rk_both/shared.py", "VALUE = 1\n")
        assert ids(report.reloaded) == ["one", "two"]


async def test_a_failed_reload_leaves_the_modules_as_they_were(package: Project) -> None:
    def picture() -> dict[str, Any]:
        found = {name: module for name, module in sys.modules.items() if name.startswith("rk_")}
        return found | {f"{name}.{key}": value for name, module in found.items() for key, value in vars(module).items()}

    async with package.running() as host:
        before = picture()
        for source in ("from rk_pack import extra\nraise ValueError\n", "def broken(:\n", "word = 1 / 0\n"):
            paths = [package.write("rk_pack/extra.py", "x = 1\n"), package.write("rk_pack/mid.py", source)]
            assert not (await host.reload.changed(paths)).ok
            assert picture() == before
        package.write("rk_pack/mid.py", "from rk_pack.extra import x as word\n")
        paths = [package.write("rk_pack/extra.py", "x = 7\n"), package.folder / "rk_pack/mid.py"]
        assert (await host.reload.changed(paths)).ok and package.log == ["one", 7]


async def test_a_version_that_failed_is_tried_again_when_what_it_lacked_is_saved(package: Project) -> None:
    async with package.running() as host:
        assert not (await package.save("rk_pack/mid.py", "from rk_pack.lacking import word\n")).ok
        assert not (await package.save("rk_pack/lacking.py", "word = \n")).ok
        report = await package.save("rk_pack/lacking.py", "word = 'there'\n")
        assert report.ok and package.log == ["one", "there"]
        assert (await host.reload.changed([package.folder / "unknown.py"])).empty


async def test_a_plugin_that_could_not_be_loaded_at_the_start_is_tried_with_every_save(project: Project) -> None:
    project.config("tool = ./tool.py\n!optional = true", "late = ./late.py\n!optional = true")
    project.write("tool.py", "def apply(\n")
    async with project.running():
        assert ids((await project.save("tool.py", TOOL, version=1)).reloaded) == ["tool"]
        assert await project.value() == 1
        report = await project.save("late.py", USER, name="late", imports="", value="1")
        assert ids(report.reloaded) == ["late"] and project.log[-1] == ("late", 1)


async def test_a_plugin_that_waits_for_a_service_waits_in_its_new_version(project: Project) -> None:
    project.config("user = ./user.py\n!optional = true")
    project.write("user.py", "inject = ['wanted']\n" + USER.format(name="user", imports="", value="1"))
    async with project.running() as host:
        source = "inject = ['wanted']\n" + USER.format(name="user", imports="", value="2")
        assert (await host.reload.changed([project.write("user.py", source)])).ok
        assert str(project.fiber("user").state) == "pending"
        host.ctx.provide("wanted", 1)
        await project.kernel.settle()
        assert project.log == [("user", 2)]


async def test_a_module_handed_over_as_an_object_is_imported_afresh(project: Project) -> None:
    project.config()
    project.write("rk_plug.py", TOOL, version=1)
    module = importlib.import_module("rk_plug")
    async with project.running(plugins=[module]):
        assert ids((await project.save("rk_plug.py", TOOL, version=2)).reloaded) == ["rk_plug"]
        assert await project.value() == 2
        assert sys.modules["rk_plug"] is not module


@pytest.mark.parametrize("end", ["del sys.modules[__name__]", "sys.modules[__name__] = type('It', (), globals())"])
async def test_a_module_that_puts_something_else_in_its_place_is_known_by_its_file(project: Project, end: str) -> None:
    project.config("tool = ./tool.py")
    tool = TOOL + f"\nimport sys; {end}\n"
    project.write("tool.py", tool, version=1)
    async with project.running():
        for version in (2, 3):
            assert ids((await project.save("tool.py", tool, version=version)).reloaded) == ["tool"]
            assert await project.value() == version


async def test_an_object_that_cannot_be_imported_again_asks_for_a_restart_and_stays(project: Project) -> None:
    project.config()
    project.write("rk_plug.py", "class Plug:\n    name = 'plug'\n\n    def apply(self, ctx): ...\n")
    plug = importlib.import_module("rk_plug").Plug()
    async with project.running(plugins=[plug]):
        fiber = project.fiber("plug")
        report = await project.host.reload.changed([project.folder / "rk_plug.py"])
        assert ids(report.reloaded) == [] and [one.subject for one in report.restart] == ["plug"]
        assert "handed over as an object" in report.restart[0].why and project.fiber("plug") is fiber


async def test_a_plugin_that_opts_out_asks_for_a_restart(project: Project) -> None:
    project.config("tool = ./tool.py")
    project.write("tool.py", "reload_policy = 'restart'\n" + TOOL.format(version=1))
    async with project.running() as host:
        report = await project.save("tool.py", TOOL, version=2)
        assert [(one.subject, one.why) for one in report.restart] == [("tool", "it says reload_policy = 'restart'")]
        assert not report.ok and not report.kept and await project.value() == 1
        assert (await host.reload.plugins(["tool"])).restart == report.restart


async def test_an_installed_library_or_an_extension_asks_for_a_restart(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = project.write("lib/site-packages/rk_library.py", "VALUE = 1\n")
    extension = _an_extension()
    monkeypatch.syspath_prepend(str(library.parent))
    project.config("user = ./user.py", "other = ./other.py")
    project.write("user.py", USER, name="user", imports="import rk_library", value="rk_library.VALUE")
    project.write("other.py", USER, name="other", imports=f"import {extension.__name__}", value="1")
    async with project.running() as host:
        for path, plugin in ((library, "user"), (Path(extension.__file__ or ""), "other")):
            report = await host.reload.changed([path])
            assert [one.subject for one in report.restart] == [plugin]
            assert f"{path.name} changed, which cannot be imported afresh" in report.restart[0].why
        assert project.log == [("user", 1), ("other", 1)]


def _an_extension() -> ModuleType:
    """A module of compiled code that has a file of its own."""
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    found = [module for module in sys.modules.values() if str(getattr(module, "__file__", "")).endswith(suffixes)]
    if not found:
        pytest.skip("this Python has every extension built in")
    return found[0]


async def test_the_hosts_own_modules_ask_for_a_restart(project: Project) -> None:
    import dsh_hookspecs._calls

    import dsh_runtime.tools.call

    project.config()
    async with project.running() as host:
        paths = [Path(dsh_runtime.tools.call.__file__), Path(dsh_hookspecs._calls.__file__)]
        report = await host.reload.changed(paths)
        assert {one.subject for one in report.restart} == {"dsh_runtime.tools.call", "dsh_hookspecs._calls"}


async def test_refresh_finds_what_has_changed_by_itself(project: Project) -> None:
    project.write("rk_help.py", "VALUE = 1\n")
    project.config("one = ./one.py", "two = ./two.py")
    project.write("one.py", USER, name="one", imports="import rk_help", value="rk_help.VALUE")
    project.write("two.py", USER, name="two", imports="", value="1")
    async with project.running() as host:
        assert (await host.reload.refresh()).empty
        project.write("rk_help.py", "VALUE = 20\n")
        report = await host.reload.refresh()
        assert ids(report.reloaded) == ["one"] and project.log[-1] == ("one", 20)
        assert (await host.reload.refresh()).empty


async def test_a_reload_by_id_takes_up_what_has_changed_below_the_plugin(project: Project) -> None:
    project.write("rk_help.py", "VALUE = 1\n")
    project.config("one = ./one.py")
    project.write("one.py", USER, name="one", imports="import rk_help", value="rk_help.VALUE")
    async with project.running() as host:
        project.write("rk_help.py", "VALUE = 20\n")
        report = await host.reload.plugins(["one", "on"])
        assert ids(report.reloaded) == ["one"] and project.log[-1] == ("one", 20)
        assert "did you mean 'one'?" in report.kept[0].problems[0].message


async def test_the_folders_to_watch_are_those_of_sources_and_config(package: Project, tmp_path: Path) -> None:
    package.write("rk_pack/sub/__init__.py", "")
    package.write("rk_pack/mid.py", "from rk_pack.deep import WORD as word\nimport rk_pack.sub\n")
    async with package.running() as host:
        folders = host.reload.watched()
        assert {tmp_path, tmp_path / "rk_pack", tmp_path / "rk_pack/sub"} <= folders
        assert not any("site-packages" in str(folder) for folder in folders)


async def test_a_folder_that_disappears_is_told_and_its_return_is_picked_up(package: Project) -> None:
    folder, away = package.folder / "rk_pack", package.folder / "away"
    async with package.running() as host:
        shutil.move(folder, away)
        files = [folder / name for name in ("__init__.py", "mid.py", "deep.py")]
        report = await host.reload.changed([folder, *files])
        assert ids(report.kept) == ["pack"]
        shutil.move(away, folder)
        assert (await host.reload.changed(files)).ok and package.log == ["one", "one"]


async def test_without_a_reload_nothing_stands_in_the_way_of_imports(project: Project) -> None:
    project.config("one = ./one.py")
    project.write("one.py", "def apply(ctx):\n    raise ValueError\n")
    finders = [*sys.meta_path]
    with pytest.raises(HostError):
        async with project.running():
            pass
    project.write("one.py", USER, name="one", imports="", value="1")
    async with project.running() as host:
        assert sys.meta_path == finders
        await host.reload.plugins(["one"])
        assert len(sys.meta_path) == len(finders) + 1
    assert sys.meta_path == finders
