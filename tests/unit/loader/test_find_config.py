"""The config file is looked for where ``--config`` says, then here, then in the user's config directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsh_runtime.loader.errors import ConfigError
from dsh_runtime.loader.find import find_config


@pytest.fixture
def home(tmp_path: Path) -> Path:
    file = tmp_path / "home/.config/dsh/dsh.toml"
    file.parent.mkdir(parents=True)
    file.write_text("")
    (tmp_path / "here").mkdir()
    return tmp_path / "home"


def test_a_file_that_is_asked_for_is_the_only_one_that_will_do(tmp_path: Path, home: Path) -> None:
    (tmp_path / "here/dsh.toml").write_text("")
    asked = tmp_path / "asked.toml"
    with pytest.raises(ConfigError, match=r"looked for '.*asked\.toml'; correct the path given with --config"):
        find_config(asked, directory=tmp_path / "here", environ={"HOME": str(home)})
    asked.write_text("")
    assert find_config(asked, directory=tmp_path / "here", environ={"HOME": str(home)}) == asked


def test_the_current_directory_goes_before_the_users(tmp_path: Path, home: Path) -> None:
    here = tmp_path / "here"
    environ = {"HOME": str(home)}
    assert find_config(directory=here, environ=environ, platform="linux") == home / ".config/dsh/dsh.toml"
    (here / "dsh.toml").write_text("")
    assert find_config(directory=here, environ=environ, platform="linux") == here / "dsh.toml"


@pytest.mark.parametrize(("variable", "platform"), [("XDG_CONFIG_HOME", "linux"), ("APPDATA", "win32")])
def test_the_users_directory_follows_the_platform(tmp_path: Path, variable: str, platform: str) -> None:
    file = tmp_path / "user/dsh/dsh.toml"
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert find_config(directory=tmp_path, environ={variable: str(tmp_path / "user")}, platform=platform) == file


def test_a_relative_xdg_directory_is_ignored(tmp_path: Path, home: Path) -> None:
    found = find_config(
        directory=tmp_path / "here", environ={"HOME": str(home), "XDG_CONFIG_HOME": "x"}, platform="linux"
    )
    assert found == home / ".config/dsh/dsh.toml"


def test_finding_nothing_names_every_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_config(directory=tmp_path, environ={"HOME": "/nowhere"}, platform="linux")
    assert str(caught.value) == (
        f"no config file found; looked for '{tmp_path / 'dsh.toml'}', '/nowhere/.config/dsh/dsh.toml'; "
        "write a dsh.toml in one of these places, or name another file with --config"
    )
