"""The commands that show things: their plain and their JSON form, word by word."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

CHILD = """
def inner(ctx):
    pass

def apply(ctx):
    ctx.plugin(inner)
"""


@pytest.fixture
def mixed(write: Write) -> Path:
    """A config with a bit of everything."""
    write("family.py", CHILD)
    write("waits.py", 'inject = ["database"]\ndef apply(ctx): pass\n')
    write("breaks.py", 'def apply(ctx):\n    raise ValueError("no luck")\n')
    rows = [
        'id = "greet"\nuse = "greet"',
        'id = "family"\nuse = "./family.py"',
        'id = "waits"\nuse = "./waits.py"',
        'id = "breaks"\nuse = "./breaks.py"',
        'id = "off"\nuse = "permission-gate"\nenabled = false',
    ]
    return write("dsh.toml", "".join(f"[[plugin]]\n{row}\n" for row in rows))


def test_tools_as_plain_rows(run: Run, greet: Path) -> None:
    """Name, owner, first line of the description."""
    assert run("tools") == (
        0,
        "TOOL   PLUGIN  DESCRIPTION\ngreet  greet   Greet someone by name.\n",
        "",
    )


def test_tools_as_json(run: Run, greet: Path) -> None:
    """With the schema of the parameters."""
    ended = run("tools", "-o", "json")
    assert json.loads(ended.out) == [
        {
            "name": "greet",
            "plugin": "greet",
            "description": "Greet someone by name.",
            "parameters": {
                "type": "object",
                "properties": {"name": {"type": "string", "description": "The name to greet."}},
                "required": ["name"],
            },
        }
    ]


def test_no_tools(run: Run, write: Write) -> None:
    """Says so, and what to do."""
    write("dsh.toml", "")
    assert run("tools").out == "No plugin of the config offers a tool; add one that does, such as greet.\n"
    assert run("tools", "-o", "json").out == "[]\n"


def test_plugins_as_a_plain_tree(run: Run, mixed: Path, tmp_path: Path) -> None:
    """Order, state, source, children, and why one is not active."""
    ended = run("plugins")
    assert (ended.code, ended.err) == (0, "")
    tree = ended.out.partition("\n\nInstalled wheels:")[0].splitlines()
    assert tree == [
        "1  greet   active  dsh-plugin-greet 0.1.0",
        f"2  family  active  {tmp_path}/family.py",
        "   2.1  inner  active",
        f"3  waits   pending  {tmp_path}/waits.py",
        "   why: dsh.toml:7: plugin 'waits' waits for the service 'database', which nobody provides; "
        "add a plugin that does",
        f"4  breaks  failed  {tmp_path}/breaks.py",
        f"   why: dsh.toml:10: plugin 'breaks' failed at {tmp_path}/breaks.py:2: ValueError: no luck; "
        "mend it, or remove it from the config",
        "5  off     disabled  dsh-plugin-permission-gate 0.1.0",
        "   why: enabled = false",
    ]


def test_plugins_names_the_installed_wheels_with_their_entry_points(run: Run, write: Write, mixed: Path) -> None:
    """And whether an enabled plugin uses them, under which id."""

    def wheels() -> dict[str, str]:
        lines = run("plugins").out.partition("Installed wheels:\n")[2].splitlines()
        return {line.split()[0]: " ".join(line.split()[1:]) for line in lines}

    assert wheels()["dsh-plugin-greet"] == "0.1.0 greet enabled"
    assert wheels()["dsh-plugin-permission-gate"] == "0.1.0 permission-gate not enabled"
    write("dsh.toml", '[[plugin]]\nid = "a"\nuse = "greet"\n[[plugin]]\nid = "b"\nuse = "dsh_plugin_greet"\n')
    assert wheels()["dsh-plugin-greet"] == "0.1.0 greet enabled as a, b"


def test_plugins_without_any_config_shows_what_is_installed(run: Run) -> None:
    """A config that was asked for has to be there all the same."""
    ended = run("plugins")
    assert ended.code == 0
    assert ended.err.startswith("note: no config file found; looked for 'dsh.toml', ")
    assert "dsh-plugin-greet" in ended.out
    assert run("plugins", "-c", "nope.toml").code == 2


def test_plugins_as_json(run: Run, mixed: Path) -> None:
    """The same tree, nested."""
    document = json.loads(run("plugins", "-o", "json").out)
    states = {node["id"]: node["state"] for node in document["plugins"]}
    assert states == {
        "greet": "active",
        "family": "active",
        "waits": "pending",
        "breaks": "failed",
        "off": "disabled",
    }
    first, second = document["plugins"][:2]
    assert first == {
        "order": "1",
        "id": "greet",
        "state": "active",
        "source": "dsh-plugin-greet 0.1.0",
        "wheel": "dsh-plugin-greet",
        "version": "0.1.0",
        "why": None,
        "children": [],
    }
    assert [child["id"] for child in second["children"]] == ["inner"]
    unused = {"name": "permission-gate", "wheel": "dsh-plugin-permission-gate", "version": "0.1.0"}
    assert unused in document["installed"]
    entry = {"name": "greet", "value": "dsh_plugin_greet", "ids": ["greet"], "enabled": True}
    assert {"name": "dsh-plugin-greet", "version": "0.1.0", "entry_points": [entry]} in document["wheels"]


def test_plugins_of_a_config_without_any(run: Run, write: Write) -> None:
    """Says so."""
    write("dsh.toml", "")
    assert run("plugins").out.startswith("The config names no plugin.\n")


def test_check_of_a_good_config(run: Run, greet: Path) -> None:
    """One line, or one document."""
    assert run("check") == (0, "ok: dsh.toml: 1 plugin, 1 tool\n", "")
    assert json.loads(run("check", "-o", "json").out) == {
        "ok": True,
        "files": ["dsh.toml"],
        "plugins": ["greet"],
        "tools": ["greet"],
        "problems": [],
        "warnings": [],
    }


def test_check_tells_every_problem_at_once(run: Run, mixed: Path) -> None:
    """One line each, exit code 2."""
    ended = run("check")
    assert (ended.code, ended.out) == (2, "")
    lines = ended.err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("error: dsh.toml:7: plugin 'waits' waits for the service 'database'")
    assert lines[1].startswith("error: dsh.toml:10: plugin 'breaks' failed at ")


def test_check_tells_problems_to_a_program(run: Run, mixed: Path) -> None:
    """With file and line; the exit code is 2 all the same."""
    ended = run("check", "-o", "json")
    assert (ended.code, ended.err) == (2, "")
    document = json.loads(ended.out)
    assert document["ok"] is False
    places = [(problem["file"], problem["line"]) for problem in document["problems"]]
    assert places == [("dsh.toml", 7), ("dsh.toml", 10)]


def test_check_warns_of_an_optional_plugin_that_fails(run: Run, write: Write) -> None:
    """The host would start, so the exit code is 0."""
    write("breaks.py", 'def apply(ctx):\n    raise ValueError("no luck")\n')
    write("dsh.toml", '[[plugin]]\nid = "breaks"\nuse = "./breaks.py"\noptional = true\n')
    ended = run("check")
    assert ended.code == 0
    assert ended.out.startswith("warning: plugin 'breaks' failed at ")
    assert ended.out.endswith("ok: dsh.toml: 1 plugin, 0 tools\n")


def test_config_show_gives_each_value_its_place(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Includes are merged, secrets masked, defaults marked; no plugin is loaded."""
    monkeypatch.setenv("GREETING_TOKEN", "hush")
    write("base.toml", "[host]\nthreads = 3\n")
    write(
        "dsh.toml",
        'include = ["base.toml"]\n\n[[plugin]]\nid = "ghost"\nuse = "nowhere"\n\n'
        '[plugin.config]\ntoken = "${env:GREETING_TOKEN}"\n',
    )
    ended = run("config", "show")
    assert ended.code == 0
    assert "hush" not in ended.out
    lines = ended.out.splitlines()
    assert 'plugin[0].id = "ghost"  # dsh.toml:4' in lines
    assert "plugin[0].optional = false  # default" in lines
    assert "plugin[0].config.token = ***  # dsh.toml:8" in lines
    assert "host.threads = 3  # base.toml:2" in lines


def test_config_show_as_json(run: Run, greet: Path) -> None:
    """Values are JSON, places are members."""
    document = json.loads(run("config", "show", "-o", "json").out)
    assert document[0] == {"path": "plugin[0].id", "value": "greet", "file": "dsh.toml", "line": 2}
    assert {"path": "host.threads", "value": 40, "file": None, "line": None} in document


@pytest.mark.parametrize("command", [("tools",), ("plugins",), ("check",), ("config", "show")])
def test_on_a_terminal_the_same_is_drawn_with_rich(run: Run, greet: Path, command: tuple[str, ...]) -> None:
    """The names are there, however they are drawn."""
    ended = run("--output", "rich", *command)
    assert ended.code == 0
    assert "greet" in ended.out or "ok" in ended.out
