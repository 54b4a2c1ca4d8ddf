"""``dsh-run new``: what it writes, and what it refuses. That the projects work is tested in ``tests/integration``."""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.cli.new.names import BadNameError, Taken, check_name
from dsh_runtime.cli.new.project import KINDS, NewFile, fill_in, project_files, write_project

Run = Callable[..., Any]
FREE = Taken({}, {}, {})


def test_it_writes_a_project_and_says_what_comes_next(run: Run, tmp_path: Path) -> None:
    ended = run("new", "word-count")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "created word-count: a tool, to begin with",
        "  .gitignore",
        "  README.md",
        "  dsh.toml",
        "  pyproject.toml",
        "  src/word_count/__init__.py",
        "  src/word_count/py.typed",
        "  tests/test_word_count.py",
        "next:",
        "  cd word-count",
        '  pip install -e ".[test]"',
        "  pytest",
        "  dsh-run check",
    ]
    written = {str(file.relative_to(tmp_path / "word-count")) for file in tmp_path.rglob("*") if file.is_file()}
    assert written == {line.strip() for line in ended.out.splitlines()[1:8]}


def test_as_json_it_lists_the_files(run: Run) -> None:
    document = json.loads(run("new", "hours", "--kind", "policy", "-o", "json").out)
    assert (document["name"], document["kind"], document["folder"]) == ("hours", "policy", "hours")
    assert "example_tool.py" in document["files"]


def test_the_project_can_be_made_in_another_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    assert run("new", "hours", "--in", "plugins").code == 0
    assert (tmp_path / "plugins" / "hours" / "pyproject.toml").is_file()


@pytest.mark.parametrize("what", ["a folder", "an empty folder", "a file", "a dangling link"])
def test_nothing_that_exists_is_touched(run: Run, tmp_path: Path, what: str) -> None:
    target = tmp_path / "hours"
    if what == "a file":
        target.write_text("mine")
    elif what == "a dangling link":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        if what == "a folder":
            (target / "README.md").write_text("mine")
    before = sorted(os.listdir(tmp_path))
    ended = run("new", "hours")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "error: 'hours' exists already, and is left as it is; take another name, or move it away\n"
    assert sorted(os.listdir(tmp_path)) == before
    if target.is_dir():
        assert [file.read_text() for file in target.iterdir()] == (["mine"] if what == "a folder" else [])


def test_a_folder_that_is_not_there_is_one_clear_line(run: Run, tmp_path: Path) -> None:
    ended = run("new", "hours", "--in", "nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "error: 'nowhere/hours' cannot be written: No such file or directory; name a folder that can be with --in\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_project_that_cannot_be_written_whole_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        write_project(tmp_path / "hours", [NewFile("a.txt", "a"), NewFile("a.txt/b.txt", "b")])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Word Count", ["'Word Count'", "lower-case letters", "try 'word-count'"]),
        ("word.count", ["try 'word-count'"]),
        ("2fast", ["a letter first", "such as 'word-count'"]),
        ("-x", ["No such option"]),
        ("word-", ["try 'word'"]),
        ("a--b", ["try 'a-b'"]),
        ("plugins/hours", ["--in"]),
        ("../hours", ["--in"]),
        ("", ["cannot be a plugin's name"]),
        ("x" * 65, ["65 letters", "at most 64"]),
        ("ünïcode", ["lower-case letters"]),
        ("a\x1b[2Jb", ["try 'a-2jb'"]),
        ("class", ["keyword of Python", "my-class"]),
        ("json", ["Python itself"]),
        ("print", ["Python itself"]),
        ("dsh-runtime", ["the host itself"]),
        ("run-code", ["the host itself"]),
        ("tools", ["the host itself"]),
        ("tests", ["the new project needs that name"]),
        ("nul", ["Windows"]),
        ("greet", ["is taken", "dsh-plugin-greet 0.1.0 brings a plugin 'greet'"]),
        ("dsh_plugin_greet", ["is taken", "'dsh-plugin-greet' 0.1.0 is installed"]),
        ("trio", ["is taken", "'trio'"]),
        ("attr", ["is taken", "has the module 'attr'"]),
    ],
)
def test_a_name_that_will_not_do_is_one_clear_line(run: Run, tmp_path: Path, name: str, parts: list[str]) -> None:
    ended = run("new", name)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert [part for part in parts if part not in ended.err] == []
    assert "\x1b" not in ended.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "word-count", "word_count", "acme-2", "x" * 64, "dsh-plugin-mine", "match"])
def test_ordinary_names_will_do(name: str) -> None:
    check_name(name, FREE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_template_calls_its_own_things_is_no_name_for_a_plugin(kind: Any) -> None:
    """Else the new project's code would have one name for two things."""
    own = {found for file in project_files("zz-plugin", kind) if file.path.endswith(".py") for found in names_in(file)}
    for name in own - {"zz_plugin", "ZzPlugin"}:
        if name.startswith("test_") or name.isupper() or (name[0].isupper() and kind != "service"):
            continue  # a class is in the way only where the plugin is one
        dashed = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
        with pytest.raises(BadNameError):
            check_name(dashed, FREE)
            pytest.fail(f"{name} is a name in the {kind} template")


def names_in(file: NewFile) -> set[str]:
    """What a module binds at its top level."""
    found: set[str] = set()
    for node in ast.parse(file.text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def test_a_placeholder_without_a_value_is_a_bug() -> None:
    assert fill_in("{{a}} {b} {{a}}", {"a": "x"}) == "x {b} x"
    with pytest.raises(KeyError):
        fill_in("{{c}}", {"a": "x"})


@pytest.mark.parametrize("kind", KINDS)
def test_no_placeholder_is_left(kind: Any) -> None:
    for file in project_files("word-count", kind):
        assert "{{" not in file.text + file.path
        assert "PACKAGE" not in file.path
