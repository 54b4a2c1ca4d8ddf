"""What ``dsh-run dev PATH`` works on, and the config that this makes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.cli.dev.adding import dev_config, find_file, with_target
from dsh_runtime.cli.dev.board import Board, Shown
from dsh_runtime.cli.dev.calls import read_calls
from dsh_runtime.cli.dev.live import fitting
from dsh_runtime.cli.dev.project import MAX_FOLDERS, folders_below, plugin_files
from dsh_runtime.cli.dev.target import DevTarget, find_target
from dsh_runtime.cli.errors import CliError
from dsh_runtime.loader.errors import ConfigProblem, Location
from dsh_runtime.loader.host import open_host
from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.reload.report import Kept, Reloaded, ReloadReport

Write = Callable[[str, str], Path]

WITH_PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")

PLUGIN = "def apply(ctx): pass\n"
PROJECT = '[project.entry-points."dsh.plugins"]\ncount = "my_count:plugin"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(path: str | None, folder: Path) -> DevTarget:
    """The target, which there has to be."""
    target = find_target(path, here=folder)
    assert target is not None
    return target


def test_a_file(folder: Path) -> None:
    """Under its own name."""
    (folder / "my plugin.py").write_text(PLUGIN)
    assert found("my plugin.py", folder).uses == {"my-plugin": f"{folder}/my plugin.py"}


def test_a_name_in_a_file(folder: Path) -> None:
    """As a config writes it."""
    (folder / "a.py").write_text(PLUGIN)
    assert found("./a.py:gate", folder).uses == {"gate": f"{folder}/a.py:gate"}


def test_a_project_by_its_entry_points(folder: Path) -> None:
    """From its source, whether or not it is installed."""
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "src" / "my_count" / "deep").mkdir(parents=True)
    target = found(None, folder)
    assert target == found(".", folder)
    assert (target.uses, target.roots) == ({"count": "my_count:plugin"}, (folder / "src",))
    assert target.watched() == {folder / "src" / "my_count", folder / "src" / "my_count" / "deep"}


def test_a_project_without_a_source_folder(folder: Path) -> None:
    """The module beside the project file."""
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "my_count.py").write_text(PLUGIN)
    assert found(".", folder).roots == (folder,)


def test_a_project_whose_module_is_not_there(folder: Path) -> None:
    """Its name and where it was looked for."""
    (folder / "pyproject.toml").write_text(PROJECT)
    with pytest.raises(CliError, match=r"names the module 'my_count' for plugin 'count', which is neither in "):
        find_target(".", here=folder)


def test_a_package(folder: Path) -> None:
    """Imported by its name, from the folder around it."""
    (folder / "counting").mkdir()
    (folder / "counting" / "__init__.py").write_text(PLUGIN)
    target = found("counting", folder)
    assert (target.uses, target.roots) == ({"counting": "counting"}, (folder,))


def test_a_folder_with_one_plugin_among_other_files(folder: Path) -> None:
    """Helpers and tests are no plugins."""
    (folder / "helper.py").write_text("x = 1\n")
    (folder / "test_it.py").write_text(PLUGIN)
    (folder / "it.py").write_text(PLUGIN)
    assert found(".", folder).uses == {"it": f"{folder}/it.py"}


@pytest.mark.parametrize(
    "source",
    [
        PLUGIN,
        "async def apply(ctx): pass\n",
        "import dsh_hookspecs\n@dsh_hookspecs.hookimpl(tryfirst=True)\ndef tools_result(exec): pass\n",
        "from dsh_runtime import Service\nclass Clock(Service): name = 'clock'\n",
        "def half(:\n",
    ],
)
def test_what_looks_like_a_plugin(folder: Path, source: str) -> None:
    """Its source is read and not run; a file that somebody is at work on may become one."""
    (folder / "it.py").write_text(source)
    assert plugin_files(folder) == [folder / "it.py"]


def test_an_installed_plugin_by_entry_point_and_by_wheel(folder: Path) -> None:
    """Either name will do."""
    assert found("greet", folder).uses == found("dsh-plugin-greet", folder).uses == {"greet": "greet"}


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("gone.py", "there is no file or folder"),
        ("./gone", "there is no file or folder"),
        ("notes.txt", "is no Python file"),
        ("", "PATH is empty"),
        pytest.param("pipe.py", "is no regular file", marks=WITH_PIPES),
        pytest.param("pipes", "holds no plugin", marks=WITH_PIPES),
        ("empty", "holds no plugin: .* begin one with 'dsh-run new NAME'"),
        ("several", r"holds several plugins \(a.py, b.py\); name one"),
        ("greeet", "there is no file, folder or installed plugin 'greeet'; .*did you mean 'greet'?"),
        ("odd-name", "is a package whose name is no identifier"),
    ],
)
def test_what_is_no_plugin_is_told_in_one_line(folder: Path, path: str, says: str) -> None:
    """With what to do."""
    (folder / "notes.txt").write_text("")
    for name in ("empty", "several", "odd-name", "pipes"):
        (folder / name).mkdir()
    if hasattr(os, "mkfifo"):
        for pipe in ("pipe.py", "pipes/pipe.py", "pipes/pyproject.toml"):
            os.mkfifo(folder / pipe)
    (folder / "several" / "a.py").write_text(PLUGIN)
    (folder / "several" / "b.py").write_text(PLUGIN)
    (folder / "odd-name" / "__init__.py").write_text(PLUGIN)
    with pytest.raises(CliError, match=says) as caught:
        find_target(path, here=folder)
    assert "\n" not in caught.value.message


def test_no_path_and_no_project(folder: Path) -> None:
    """Then the config alone is run, which has to be there."""
    assert find_target(None, here=folder) is None
    (folder / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    assert find_target(None, here=folder) is None


def test_thousands_of_folders_are_not_all_watched(folder: Path) -> None:
    """It is told; those of tools and environments do not count."""
    package = folder / "big"
    (package / "__pycache__").mkdir(parents=True)
    (package / ".git" / "objects").mkdir(parents=True)
    (package / "__init__.py").write_text(PLUGIN)
    assert folders_below(package) == ([package], True)
    for number in range(MAX_FOLDERS + 1):
        (package / f"f{number}").mkdir()
    target = found("big", folder)
    assert len(target.watched()) == MAX_FOLDERS
    assert "too many folders" in target.notes[0]


def test_a_plugin_beside_the_config_comes_last(folder: Path) -> None:
    """Under an id that nobody has."""
    config = load_config({"plugin": [{"id": "it", "use": "greet"}]})
    rows = with_target(config, DevTarget("it.py", {"it": "/x/it.py"})).rows
    assert [(row.id, row.use) for row in rows] == [("it", "greet"), ("it-2", "/x/it.py")]


@pytest.mark.parametrize("use", ["count", "my_count:plugin"])
def test_a_row_that_loads_what_is_worked_on_keeps_its_config_and_place(folder: Path, use: str) -> None:
    """It is enabled, and loaded from the source."""
    rows = [{"id": "mine", "use": use, "enabled": False, "config": {"a": 1}}, {"id": "greet", "use": "greet"}]
    config = with_target(load_config({"plugin": rows}), DevTarget(".", {"count": "my_count:plugin"}))
    assert [(row.id, row.use, row.enabled, dict(row.config)) for row in config.rows] == [
        ("mine", "my_count:plugin", True, {"a": 1}),
        ("greet", "greet", True, {}),
    ]


def test_a_row_that_names_the_same_file_otherwise(folder: Path) -> None:
    """A path from elsewhere leads to it."""
    (folder / "it.py").write_text(PLUGIN)
    config = load_config({"plugin": [{"id": "mine", "use": "./sub/../it.py"}]})
    (folder / "sub").mkdir()
    assert [row.id for row in with_target(config, found("it.py", folder)).rows] == ["mine"]


def test_the_config_is_made_for_somebody_who_works(folder: Path) -> None:
    """Nothing is pinned, and the command does the reloading itself."""
    (folder / "dsh.toml").write_text('[host]\nreload = true\n[[plugin]]\nid = "greet"\nuse = "greet"\n')
    config = dev_config(find_file(None, None), None)
    assert (config.host.reload, config.pins) == (False, None)


def test_without_config_and_path_both_are_offered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "none"))
    with pytest.raises(CliError, match=r"no config file found; .*; or give the path of a plugin: dsh-run dev PATH"):
        find_file(None, None)


@pytest.mark.parametrize("text", ["", "  ", "x 'y", "greet Ada"])
def test_a_call_that_cannot_be_read(text: str) -> None:
    """Is refused before anything is started."""
    with pytest.raises(CliError):
        read_calls((text,))


def test_a_call_is_read_as_a_shell_reads_it() -> None:
    """Quotes hold a value together."""
    (call,) = read_calls(("say 'text=one two' n:=2",))
    assert (call.tool, [(pair.key, pair.text) for pair in call.pairs]) == ("say", [("text", "one two"), ("n", "2")])


def test_more_calls_than_anybody_reads_are_refused() -> None:
    """There is a bound."""
    with pytest.raises(CliError, match="at most 20"):
        read_calls(("greet name=Ada",) * 21)


async def test_errors_stand_on_the_board_until_they_are_mended() -> None:
    """Those of one plugin are not taken away by another's reload."""

    def kept(plugin: str) -> Any:
        return Kept(plugin, (ConfigProblem((), f"{plugin} is broken", Location(f"/{plugin}.py", 3)),))

    async with open_host({"plugin": [{"id": "greet", "use": "greet"}]}) as host:
        board = Board(host, frozenset({"greet"}))
        assert [line.text for line in board.begin()] == ["greet is active (tools: greet)"]
        host.reload.failed = {"a": None, "b": None}
        board.reloaded(ReloadReport(kept=(kept("a"), kept("b"))))
        assert board.errors == {"a": ("/a.py:3: a is broken",), "b": ("/b.py:3: b is broken",)}
        host.reload.failed = {"b": None, "c": None}
        board.reloaded(ReloadReport(reloaded=(Reloaded("a", 1.0, "it changed"),), kept=(kept("c"),)))
        assert set(board.errors) == {"b", "c"}
        host.reload.failed = {}
        board.reloaded(ReloadReport(reloaded=(Reloaded("greet", 1.0, "it changed"),)))
        assert board.errors == {}
        assert [(one.id, one.state, one.tools, one.reloads, one.worked_on) for one in board.plugins()] == [
            ("greet", "active", ("greet",), 1, True)
        ]


def test_many_plugins_leave_room_for_calls_and_errors() -> None:
    """Those that are worked on and those that are not active are shown in any case."""
    plugins = [Shown(f"p{number}", "active") for number in range(20)]
    plugins[7], plugins[15] = Shown("mine", "active", worked_on=True), Shown("broken", "failed")
    assert fitting(plugins, 20) == (plugins, 0)
    shown, hidden = fitting(plugins, 5)
    assert ([one.id for one in shown], hidden) == (["p0", "p1", "mine", "broken"], 16)
