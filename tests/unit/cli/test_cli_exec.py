"""``dsh-run exec``: a person's program against the tools of the config, and what the record tells of it afterwards."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

CONFIG = """\
[host.log]
path = "log.db"
[[plugin]]
id = "greet"
use = "greet"
"""
GATE = """\
[[plugin]]
id = "gate"
use = "permission-gate"
[plugin.config]
default = "allow"
[[plugin.config.rules]]
action = "deny"
tools = ["greet"]
arguments = { name = ["Mallory"] }
reason = "not her"
"""
PROGRAM = """\
names = ["Ada", "Bob"]
for name in names:
    print(await tools.greet({"name": name}))
return {"count": len(names)}
"""


@pytest.fixture
def config(write: Write) -> Path:
    """A config with one tool and a log."""
    return write("dsh.toml", CONFIG)


def test_a_program_in_a_file_runs(config: Path, run: Run, write: Write) -> None:
    """What it prints and returns comes out; Code Mode need not be configured."""
    write("p.py", PROGRAM)
    assert run("exec", "p.py") == (0, 'Hello, Ada!\nHello, Bob!\n{"count": 2}\n', "")


def test_a_program_on_stdin_runs(config: Path, run: Run, piped: Callable[[bytes], None]) -> None:
    """With the mark of its encoding, too."""
    piped(b"\xef\xbb\xbfreturn await tools.greet(name='Ada')\n")
    assert run("exec", "-") == (0, "Hello, Ada!\n", "")


def test_as_json_everything_is_one_document(config: Path, run: Run, write: Write) -> None:
    """Of the same shape as that of a call."""
    write("p.py", PROGRAM)
    document = json.loads(run("exec", "p.py", "-o", "json").out)
    assert document["value"] == {"logs": "Hello, Ada!\nHello, Bob!\n", "result": {"count": 2}}
    assert (document["is_error"], document["error"]) == (False, None)


def test_a_program_that_fails_ends_with_exit_code_1(config: Path, run: Run, write: Write) -> None:
    """One line says why; traceback and output follow."""
    write("p.py", "print('so far')\n1 / 0\n")
    ended = run("exec", "p.py")
    assert ended.code == 1
    assert ended.err.splitlines() == [
        "error: tool 'run_code' failed [CODE_RUN_FAILED] by plugin 'code-mode': "
        "the program failed (exception): ZeroDivisionError: division by zero"
    ]
    assert "line 2" in ended.out
    assert "so far" in ended.out
    error = json.loads(run("exec", "p.py", "-o", "json").out)["error"]
    assert (error["code"], error["plugin"]) == ("CODE_RUN_FAILED", "code-mode")


def test_policy_decides_about_each_of_its_calls(config: Path, run: Run, write: Write) -> None:
    """And the program hears of it."""
    write("dsh.toml", CONFIG + GATE)
    caught = "except ToolCallError as error:\n    return error.code\n"
    write("p.py", f"try:\n    await tools.greet(name='Mallory')\n{caught}")
    assert run("exec", "p.py") == (0, "DENIED\n", "")


@pytest.mark.parametrize("mode", ["native", "code", "both"])
def test_a_person_reaches_the_tools_in_every_mode(run: Run, write: Write, mode: str) -> None:
    """Presentation is for models."""
    write("dsh.toml", f"[host]\npresentation = '{mode}'\n[[plugin]]\nid = 'greet'\nuse = 'greet'\n")
    write("p.py", PROGRAM)
    assert run("call", "greet", "name=Ada") == (0, "Hello, Ada!\n", "")
    assert run("exec", "p.py").code == 0
    assert "greet" in run("tools").out
    assert run("explain", "--would", "greet", "name=Ada").out.splitlines()[-1] == "would be allowed"


def test_where_code_mode_is_off_nothing_is_run(run: Run, write: Write) -> None:
    """And the config says so."""
    write("dsh.toml", "[host.code]\nenabled = false\n")
    write("p.py", "pass\n")
    ended = run("exec", "p.py")
    assert (ended.code, ended.out) == (2, "")
    assert "[host.code] enabled = false" in ended.err


@pytest.mark.parametrize(
    ("args", "data", "says"),
    [
        (["missing.py"], None, "cannot be read"),
        (["."], None, "cannot be read"),
        (["p.py"], b"print('\xff')", "no text in UTF-8"),
        (["p.py"], b"#" * (8 * 2**20 + 1), "too long"),
        ([], None, "takes the file"),
        (["p.py", "--sdk"], b"", "takes the file"),
    ],
)
def test_what_is_no_program_is_told_in_one_line(
    config: Path, run: Run, tmp_path: Path, args: list[str], data: bytes | None, says: str
) -> None:
    """Before anything is loaded."""
    if data is not None:
        (tmp_path / "p.py").write_bytes(data)
    ended = run("exec", *args)
    assert (ended.code, ended.out) == (2, "")
    assert len(ended.err.splitlines()) == 1
    assert says in ended.err


def test_the_declarations_can_be_had(config: Path, run: Run) -> None:
    """For an editor, a type checker or a prompt of one's own."""
    text = run("exec", "--sdk").out
    assert "async def greet(self, args: GreetArgs, /) -> str:" in text
    ast.parse(text)
    assert json.loads(run("exec", "--sdk", "-o", "json").out)["sdk"].rstrip() == text.rstrip()


def test_the_record_tells_the_tree_of_its_calls(config: Path, run: Run, write: Write) -> None:
    """A beginning of the id will do, though the calls inside begin so, too."""
    write("p.py", PROGRAM)
    run("exec", "p.py")
    listed = json.loads(run("log", "calls", "-o", "json").out)
    outer = listed[-1]["call_id"]
    assert [call["call_id"] for call in listed] == [f"{outer}:code:2", f"{outer}:code:1", outer]
    document = json.loads(run("explain", outer[:8], "-o", "json").out)
    assert (document["call_id"], document["name"]) == (outer, "run_code")
    assert [(call["call_id"], call["name"], call["parent"]) for call in document["nested"]] == [
        (f"{outer}:code:1", "greet", outer),
        (f"{outer}:code:2", "greet", outer),
    ]
    lines = run("explain", outer).out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("  call ")] == [f"{outer}:code:1", f"{outer}:code:2"]
    inner = json.loads(run("explain", f"{outer}:code:2", "-o", "json").out)
    assert (inner["arguments"], inner["root"]) == ({"name": "Bob"}, outer)
    assert "for name in names:" in run("replay", outer).out
    exported = [json.loads(line)["type"] for line in run("log", "export").out.splitlines()]
    assert exported.count("tool/code-dispatch-start") == exported.count("tool/code-dispatch") == 2
