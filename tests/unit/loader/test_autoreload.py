"""A host with ``reload = true`` takes up what its author saves, however the editor saves it.

Real files and real events; what is waited for has a bound, and nothing is asserted of how long it took.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from dsh_runtime import AbortController, ConfigError, ToolExecutionInput, open_host
from dsh_runtime.loader.autoreload.places import MAX_AT_ONCE, Places
from dsh_runtime.loader.autoreload.relevance import matters
from dsh_runtime.loader.autoreload.watcher import MAX_PATHS, Changes

SAYS = """
from dsh_runtime import tool

inject = ["tools"]
{extra}

@tool
def say() -> str:
    \"\"\"Say.\"\"\"
    return {value}


def apply(ctx):
    ctx.tools.register(say)
"""


def says(value: str, extra: str = "") -> str:
    """A plugin whose tool answers ``value``."""
    return SAYS.format(value=repr(value), extra=extra)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a config that reloads, and a plugin beside it."""
    folder = tmp_path / "project"
    (folder / "plugins").mkdir(parents=True)
    (folder / "dsh.toml").write_text('[host]\nreload = true\n[[plugin]]\nid = "p"\nuse = "./plugins/p.py"\n')
    (folder / "plugins" / "p.py").write_text(says("one"))
    return folder


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[Callable[[str], Any]]:
    """A host of that folder; gives what waits until the tool answers so."""
    async with open_host(folder / "dsh.toml") as host:

        async def answer() -> Any:
            call = ToolExecutionInput("c", "say", {}, AbortController().signal)
            result = await host.ctx.tools.execute(call)
            return None if result.is_error else result.value

        async def until(value: str | None) -> None:
            with trio.fail_after(8):
                while await answer() != value:  # noqa: ASYNC110 - a thread and a process of the system are waited for
                    await trio.sleep(0.02)

        await until("one")
        yield until


async def test_a_save_is_taken_up(project: Path) -> None:
    """Also the second one within the same second."""
    async with running(project) as until:
        for value in ("two", "six"):
            (project / "plugins" / "p.py").write_text(says(value))
            await until(value)


async def test_an_editor_that_writes_aside_and_renames(project: Path) -> None:
    """As most do."""
    async with running(project) as until:
        for value in ("two", "six"):
            aside = project / "plugins" / ".p.py.tmp~"
            aside.write_text(says(value))
            os.replace(aside, project / "plugins" / "p.py")
            await until(value)


async def test_an_edit_of_the_config_is_taken_up(project: Path) -> None:
    """A row that comes, and one that goes."""
    (project / "plugins" / "q.py").write_text(says("two"))
    text = (project / "dsh.toml").read_text()
    async with running(project) as until:
        (project / "dsh.toml").write_text(text.replace("p.py", "q.py"))
        await until("two")
        (project / "dsh.toml").write_text(text.replace('use = "./plugins/p.py"', 'use = "greet"'))
        await until(None)


async def test_a_config_behind_a_link_is_followed(project: Path) -> None:
    """As where a whole folder of configs is exchanged by one link."""
    for name in ("old", "new"):
        (project / name).mkdir()
        shutil.copy(project / "dsh.toml", project / name / "dsh.toml")
    (project / "plugins" / "q.py").write_text(says("two"))
    text = (project / "dsh.toml").read_text().replace('"./plugins', f'"{project}/plugins')
    (project / "old" / "dsh.toml").write_text(text)
    (project / "new" / "dsh.toml").write_text(text.replace("p.py", "q.py"))
    (project / "current").symlink_to("old")
    (project / "dsh.toml").unlink()
    (project / "dsh.toml").symlink_to("current/dsh.toml")
    async with running(project) as until:
        (project / "next").symlink_to("new")
        os.replace(project / "next", project / "current")
        await until("two")


async def test_a_folder_that_goes_and_comes_back(project: Path) -> None:
    """What was loaded stays while it is away."""
    async with running(project) as until:
        shutil.rmtree(project / "plugins")
        await trio.sleep(0.3)
        await until("one")
        (project / "plugins").mkdir()
        (project / "plugins" / "p.py").write_text(says("two"))
        await until("two")
        (project / "plugins" / "p.py").write_text(says("six"))
        await until("six")


async def test_a_folder_that_is_exchanged(project: Path) -> None:
    """By a rename, which its own watch does not tell."""
    shutil.copytree(project / "plugins", project / "other")
    (project / "other" / "p.py").write_text(says("two"))
    async with running(project) as until:
        os.rename(project / "plugins", project / "away")
        os.rename(project / "other", project / "plugins")
        await until("two")
        (project / "plugins" / "p.py").write_text(says("six"))
        await until("six")


async def test_a_helper_in_a_folder_of_its_own_is_watched_once_it_is_used(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is watched follows what is imported."""
    library = project / "library"
    library.mkdir()
    monkeypatch.syspath_prepend(str(library))
    (library / "autoreload_words.py").write_text("WORD = 'two'\n")
    async with running(project) as until:
        source = SAYS.format(value="autoreload_words.WORD", extra="import autoreload_words")
        (project / "plugins" / "p.py").write_text(source)
        await until("two")
        (library / "autoreload_words.py").write_text("WORD = 'six'\n")
        await until("six")
    sys.modules.pop("autoreload_words", None)


async def test_a_mistake_is_kept_out_and_the_next_save_is_taken(project: Path) -> None:
    """The version that runs goes on meanwhile."""
    async with running(project) as until:
        (project / "plugins" / "p.py").write_text("def apply(ctx:\n")
        await trio.sleep(0.5)
        await until("one")
        (project / "plugins" / "p.py").write_text(says("two"))
        await until("two")


async def test_a_save_while_a_new_version_hangs(project: Path) -> None:
    """The hanging one is given up for it."""
    hangs = says("hangs").replace("def apply(ctx):", "import trio\nasync def apply(ctx):\n    await trio.sleep(60)")
    async with running(project) as until:
        (project / "plugins" / "p.py").write_text(hangs)
        await trio.sleep(0.5)
        (project / "plugins" / "p.py").write_text(says("two"))
        await until("two")


async def test_a_flood_of_files_is_survived(project: Path) -> None:
    """As when another branch is checked out."""
    async with running(project) as until:
        for number in range(2 * MAX_PATHS):
            (project / "plugins" / f"other{number}.py").write_text("")
        (project / "plugins" / "p.py").write_text(says("two"))
        await until("two")


async def test_nothing_is_left_of_the_watcher(project: Path) -> None:
    """No thread, when the host is closed."""
    async with running(project):
        assert "dsh watcher" in [thread.name for thread in threading.enumerate()]
    assert "dsh watcher" not in [thread.name for thread in threading.enumerate()]


async def test_a_host_without_the_setting_watches_nothing(project: Path) -> None:
    """Not even a thread."""
    (project / "dsh.toml").write_text((project / "dsh.toml").read_text().replace("true", "false"))
    async with running(project):
        assert "dsh watcher" not in [thread.name for thread in threading.enumerate()]


async def test_without_watchfiles_the_start_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line, with its place."""
    monkeypatch.setitem(sys.modules, "watchfiles._rust_notify", None)
    with pytest.raises(ConfigError) as caught:
        async with open_host(project / "dsh.toml"):
            pass
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{project}/dsh.toml:2: host.reload: watching files needs watchfiles")
    assert "install dsh-runtime[dev]" in line


async def test_where_the_system_has_no_watches_left_the_files_are_looked_at(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs more, and works; so it does where the user wants it."""
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    async with running(project) as until:
        for value in ("two", "six"):
            (project / "plugins" / "p.py").write_text(says(value))
            await until(value)
        (project / "dsh.toml").write_text((project / "dsh.toml").read_text().replace("./plugins/p.py", "greet"))
        await until(None)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.py", True),
        ("native.so", True),
        ("gone_package", True),
        ("dsh.toml", True),
        ("other.toml", False),
        ("__pycache__", False),
        (".git", False),
        (".a.py.swp", False),
        ("a.py~", False),
        ("#a.py#", False),
        (".#a.py", False),
        ("a.pyc", False),
        ("venv", False),
        ("notes.txt", False),
    ],
)
def test_what_matters(tmp_path: Path, name: str, wanted: bool) -> None:
    """Sources, packages, the config's own files; no leavings of editors and tools."""
    assert matters(tmp_path / name, {tmp_path / "dsh.toml"}) is wanted


def test_a_plain_file_without_a_suffix_does_not_matter(tmp_path: Path) -> None:
    """A folder does: it may be a package."""
    (tmp_path / "notes").write_text("")
    (tmp_path / "package").mkdir()
    assert not matters(tmp_path / "notes", set())
    assert matters(tmp_path / "package", set())


def test_for_a_folder_that_is_gone_the_nearest_one_is_watched(tmp_path: Path) -> None:
    """Until it is there again; a new one in its place is another one."""
    (tmp_path / "a").mkdir()
    places = Places([tmp_path / "a", tmp_path / "b" / "c"])
    assert places.to_watch == {tmp_path / "a", tmp_path} and not places.are_others()
    (tmp_path / "a").rename(tmp_path / "d")
    assert places.are_others()
    (tmp_path / "a").mkdir()
    assert places.are_others()


def test_of_very_many_folders_each_is_looked_at_in_its_turn(tmp_path: Path) -> None:
    """So that an idle watcher costs the same, however many there are."""
    folders = [tmp_path / f"f{number}" for number in range(2 * MAX_AT_ONCE + 1)]
    for folder in folders:
        folder.mkdir()
    places = Places(folders)
    assert not any(places.are_others() for _ in range(6))
    folders[-1].rename(tmp_path / "away")
    assert [places.are_others() for _ in range(3)] == [False, False, True]


def test_of_too_many_changes_it_is_only_known_that_there_are_some() -> None:
    """What is kept has a bound."""
    many = frozenset(Path(f"/{number}") for number in range(MAX_PATHS + 1))
    assert Changes() | Changes(many) == Changes(missed=True)
    assert Changes(missed=True) | Changes(frozenset({Path("/a")})) == Changes(missed=True)
