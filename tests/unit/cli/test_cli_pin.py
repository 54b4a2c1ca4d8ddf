"""``dsh-run plugins pin``: it writes the pins, and nothing else; a host with pins keeps to them."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.cli.plugins.pin_text import CannotEditError, edit_pins
from dsh_runtime.loader.discover import forget_installed
from dsh_runtime.loader.pin import Pin

sys.path.insert(0, str(Path(__file__).parents[1] / "loader"))  # the kit stands beside the loader's tests
from wheel_kit import install_wheel

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

PLUGIN = "def apply(ctx): pass\n"
ROWS = """\
# The host of the office.
[[plugin]]
id = "notes"  # our own
use = "./notes.py"

[[plugin]]
id = "hello"
use = "greet"
config = {}
"""
DIGEST = "sha256:" + "a" * 64
ONE = Pin(digest=DIGEST, wheel="w", version="1.0")
TWO = Pin(digest="sha256:" + "b" * 64)


@pytest.fixture
def config(write: Write) -> Path:
    """A config with a file and a wheel."""
    write("notes.py", PLUGIN)
    return write("dsh.toml", ROWS)


def test_pinning_appends_a_table_and_keeps_the_rest(run: Run, config: Path) -> None:
    ended = run("plugins", "pin")
    assert (ended.code, ended.err) == (0, "")
    text = config.read_text()
    assert text.startswith(ROWS + "\n[pins]\n")
    pins = tomllib.loads(text)["pins"]
    assert list(pins) == ["notes", "hello"]
    assert list(pins["notes"]) == ["digest"]
    assert (pins["hello"]["wheel"], pins["hello"]["version"]) == ("dsh-plugin-greet", "0.1.0")
    lines = ended.out.splitlines()
    assert lines[0].startswith("notes  new        sha256:")
    assert lines[1].startswith("hello  new        dsh-plugin-greet 0.1.0 sha256:")
    assert lines[2] == "pinned: dsh.toml: 2 plugins"


def test_a_host_with_pins_starts_until_something_changes(run: Run, config: Path, write: Write) -> None:
    run("plugins", "pin")
    assert run("check").code == 0
    write("notes.py", PLUGIN + "# changed\n")
    ended = run("check")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(
        "error: dsh.toml:12: pins.notes: plugin 'notes' is not what was pinned: expected sha256:"
    )
    assert ended.err.endswith("look at the change and run 'dsh-run plugins pin'\n")
    assert ended.err.count("\n") == 1
    assert run("plugins", "pin").code == 0
    assert run("check").code == 0


def test_only_what_is_named_is_pinned_anew(run: Run, config: Path, write: Write) -> None:
    run("plugins", "pin")
    before = tomllib.loads(config.read_text())["pins"]
    write("notes.py", PLUGIN + "# changed\n")
    assert "hello  as before" in run("plugins", "pin", "hello").out
    assert tomllib.loads(config.read_text())["pins"] == before
    assert "notes  changed" in run("plugins", "pin", "notes").out
    assert tomllib.loads(config.read_text())["pins"] != before


def test_pinning_twice_writes_nothing(run: Run, config: Path) -> None:
    run("plugins", "pin")
    before = config.stat()
    assert "as before" in run("plugins", "pin").out
    assert (config.stat().st_mtime_ns, config.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_as_json_it_says_what_changed(run: Run, config: Path) -> None:
    document = json.loads(run("plugins", "pin", "-o", "json").out)
    assert document["file"] == "dsh.toml"
    assert [(pin["id"], pin["change"]) for pin in document["pins"]] == [("notes", "new"), ("hello", "new")]
    assert document["pins"][1]["wheel"] == "dsh-plugin-greet"


def test_pins_of_plugins_that_are_gone_go_and_those_of_disabled_ones_stay(run: Run, config: Path) -> None:
    run("plugins", "pin")
    config.write_text(config.read_text().replace('use = "greet"', 'use = "greet"\nenabled = false'))
    run("plugins", "pin")
    assert list(tomllib.loads(config.read_text())["pins"]) == ["notes", "hello"]
    rows, _, pins = config.read_text().partition("[pins]")
    config.write_text(rows.partition('[[plugin]]\nid = "hello"')[0] + "[pins]" + pins)
    assert "plugin 'hello' is pinned, and the config has none" in run("check").err
    assert "hello  removed" in run("plugins", "pin").out
    assert list(tomllib.loads(config.read_text())["pins"]) == ["notes"]
    assert run("check").code == 0


def test_pins_go_into_the_file_that_was_named_not_into_what_it_includes(run: Run, config: Path, write: Write) -> None:
    top = write("staging.toml", 'include = ["dsh.toml"]\n')
    assert run("-c", "staging.toml", "plugins", "pin").code == 0
    assert config.read_text() == ROWS
    assert list(tomllib.loads(top.read_text())["pins"]) == ["notes", "hello"]


def test_a_stale_pin_of_an_included_file_is_told_with_its_place(run: Run, config: Path, write: Write) -> None:
    write("base.toml", f'[pins]\ngone = {{ digest = "{DIGEST}" }}\n')
    write("dsh.toml", 'include = ["base.toml"]\n' + ROWS)
    ended = run("plugins", "pin")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: base.toml:2: plugin 'gone' is pinned there, and the config has none; remove that pin\n"


def test_the_mode_of_the_file_and_a_link_to_it_are_kept(run: Run, config: Path, tmp_path: Path) -> None:
    config.rename(tmp_path / "real.toml")
    config.symlink_to("real.toml")
    (tmp_path / "real.toml").chmod(0o640)
    assert run("plugins", "pin").code == 0
    assert config.is_symlink()
    assert stat.S_IMODE((tmp_path / "real.toml").stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["dsh.toml", "notes.py", "real.toml"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("nots",), "the config has no plugin 'nots'; did you mean 'notes'?"),
        (("off",), "plugin 'off' is switched off (enabled = false)"),
        ((), "plugin 'lost' (use = 'nowhere') cannot be pinned: no installed plugin or module is called 'nowhere'"),
    ],
)
def test_what_cannot_be_pinned_is_one_clear_line_and_nothing_is_written(
    run: Run, config: Path, args: tuple[str, ...], said: str
) -> None:
    text = ROWS + '[[plugin]]\nid = "off"\nuse = "greet"\nenabled = false\n[[plugin]]\nid = "lost"\nuse = "nowhere"\n'
    config.write_text(text)
    ended = run("plugins", "pin", *args)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: {said}")
    assert ended.err.count("\n") == 1
    assert config.read_text() == text


def test_an_optional_plugin_that_is_not_there_is_passed_over(run: Run, config: Path) -> None:
    config.write_text(ROWS + '[[plugin]]\nid = "lost"\nuse = "nowhere"\noptional = true\n')
    ended = run("plugins", "pin")
    assert ended.code == 0
    assert ended.err.startswith("note: plugin 'lost' (use = 'nowhere') cannot be pinned")
    assert run("check").code == 0


def test_a_disk_that_takes_no_more_leaves_the_config_as_it_was(
    run: Run, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "replace", full)
    ended = run("plugins", "pin")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: 'dsh.toml' cannot be written: Read-only file system; make it writable\n"
    assert config.read_text() == ROWS
    assert sorted(os.listdir(tmp_path)) == ["dsh.toml", "notes.py"]


def test_what_the_host_would_load_by_itself_has_to_be_pinned_too(run: Run, config: Path) -> None:
    """The MCP server stands in no row, and so has no pin."""
    run("plugins", "pin")
    ended = run("mcp")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "error: the plugin 'mcp-server' is installed, but this config has [pins], and no plugin 'mcp-server'; "
        'add it (id = "mcp-server", use = "mcp-server") and run \'dsh-run plugins pin\'\n'
    )


def test_a_wheel_that_was_changed_where_it_is_installed_is_not_pinned(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is installed anew, or the change becomes a wheel."""
    site = tmp_path / "site"
    site.mkdir()
    install_wheel(site, "zz-gate", {"zz_gate/__init__.py": PLUGIN}, entry="zz_gate")
    (site / "zz_gate/__init__.py").write_text(PLUGIN + "# changed\n")
    monkeypatch.syspath_prepend(site)
    forget_installed()
    text = write("dsh.toml", '[[plugin]]\nid = "gate"\nuse = "zz-gate"\n').read_text()
    ended = run("plugins", "pin")
    forget_installed()
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "error: plugin 'gate' (use = 'zz-gate') cannot be pinned: zz_gate/__init__.py of zz-gate 1.0 was changed where "
        "it is installed; install the wheel again\n"
    )
    assert (tmp_path / "dsh.toml").read_text() == text


def test_an_edit_that_somebody_makes_meanwhile_is_not_lost(
    run: Run, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit_slowly(text: str, pins: dict[str, Pin]) -> str:
        config.write_text(ROWS + "# mine\n")
        return edit_pins(text, pins)

    monkeypatch.setattr("dsh_runtime.cli.plugins.pinning.edit_pins", edit_slowly)
    ended = run("plugins", "pin")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: 'dsh.toml' was changed meanwhile, and is left as it is; run this again\n"
    assert config.read_text() == ROWS + "# mine\n"


# The text.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "[pins]\na = ONE\nb = TWO\n"),
        ("[host]\n", "[host]\n\n[pins]\na = ONE\nb = TWO\n"),
        ("[host]", "[host]\n\n[pins]\na = ONE\nb = TWO\n"),
        ("[host]\n\n", "[host]\n\n[pins]\na = ONE\nb = TWO\n"),
        ("[host]\r\n", "[host]\r\n\r\n[pins]\r\na = ONE\r\nb = TWO\r\n"),
        ("[pins]\n[host]\n", "[pins]\na = ONE\nb = TWO\n[host]\n"),
        (
            "[ pins ] # seen by Ada\n# first\nb = {digest = 'x'} # why\n\n# old\nc = {}\n\n# the host\n[host]\n",
            "[ pins ] # seen by Ada\n# first\nb = TWO # why\n\n# old\na = ONE\n\n# the host\n[host]\n",
        ),
        ("x = '''\n[pins]\n'''\n", "x = '''\n[pins]\n'''\n\n[pins]\na = ONE\nb = TWO\n"),
    ],
)
def test_an_edit_keeps_everything_else(text: str, expected: str) -> None:
    one = f'{{ wheel = "w", version = "1.0", digest = "{DIGEST}" }}'
    two = f'{{ digest = "{TWO.digest}" }}'
    assert edit_pins(text, {"a": ONE, "b": TWO}) == expected.replace("ONE", one).replace("TWO", two)


@pytest.mark.parametrize(
    "text",
    ["pins = {}\n", "pins.a = {}\n", "[pins.a]\ndigest = 'x'\n", "[pins]\na.digest = 'x'\n", "pins = 3\n"],
)
def test_a_form_that_is_not_edited_is_refused(text: str) -> None:
    with pytest.raises(CannotEditError):
        edit_pins(text, {"a": ONE})


IDS = st.text("ab.-_", min_size=1, max_size=3)
PINS = st.dictionaries(IDS, st.sampled_from([ONE, TWO]), max_size=4)
PIECES = st.lists(
    st.sampled_from(
        ["# note\n", "\n", "[host]\nthreads = 3\n", "[[plugin]]\nid = 'x'\n", "y = '''\n[pins]\na = {}\n'''\n"]
    ),
    max_size=4,
)


@given(PIECES, PINS, PIECES, PINS)
def test_edits_follow_one_another(
    before: list[str], first: dict[str, Pin], after: list[str], second: dict[str, Pin]
) -> None:
    """Whatever stands around the table: the second pins are there, the rest is as it was."""
    text = "".join(before)
    try:
        edited = edit_pins(text, first) + "".join(after)
        rest = {key: value for key, value in tomllib.loads(edited).items() if key != "pins"}
    except tomllib.TOMLDecodeError:
        return  # the pieces make no document
    except CannotEditError:
        return  # a piece behind the table fell into it
    if set(tomllib.loads(edited)["pins"]) != set(first):
        return
    again = tomllib.loads(edit_pins(edited, second))
    assert set(again.pop("pins")) == set(second)
    assert again == rest


def test_the_doctor_names_what_is_not_pinned_as_it_is(run: Run, config: Path, write: Write) -> None:
    """And the pins that no plugin has any more."""
    run("plugins", "pin")
    config.write_text(config.read_text() + f'gone = {{ digest = "{DIGEST}" }}\n')
    write("notes.py", PLUGIN + "# changed\n")
    findings = json.loads(run("doctor", "-o", "json").out)["findings"]
    found = [(finding["kind"], finding["severity"], finding["config"]["path"]) for finding in findings]
    assert found == [("pin", "error", "pins.notes"), ("pin", "error", "pins.gone")]
    assert "dsh-run plugins pin" in findings[0]["remedy"]
