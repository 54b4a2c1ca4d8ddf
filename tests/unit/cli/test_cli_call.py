"""``dsh-run call``: what goes in, what comes out, and the exit code."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

TOOLS = '''
import trio
from dsh_hookspecs import Block, ContextMessage, HarnessError
from dsh_runtime import ToolOutput, define_tool, tool

inject = ["tools"]


@tool
async def fail(message: str) -> str:
    """Fail with a code."""
    raise HarnessError(message, code="NO_LUCK")


@tool
async def crash() -> str:
    """Fail without a code."""
    raise ValueError("two\\nlines")


@tool
async def shout(text: str, times: int = 1) -> str:
    """Print, and say it again."""
    print("a stray line")
    return text * times


async def look(args, exec):
    exec.defer_context(ContextMessage([{"type": "text", "text": "more"}], "look"))
    return {"n": args["n"]}


def apply(ctx):
    for definition in (fail, crash, shout):
        ctx.tools.register(definition)
    ctx.tools.register(define_tool(
        name="look", description="Look.", parameters={"n": {"type": "integer", "required": True}},
        output=ToolOutput(
            {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
            render=lambda args, value: [
                {"type": "text", "text": "seen\\x1b[2J"},
                {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            ],
            presentation_meta=lambda args, value: {"title": "n"},
        ),
        execute=look,
    ))

    async def screen(exec, result, next):
        if exec.name == "shout" and exec.arguments.get("text") == "secret":
            return Block("That is not for you.")
        return await next()

    ctx.on("tools/post-execute", screen)
'''


@pytest.fixture
def tools(write: Write) -> Path:
    """A config with a plugin of several tools."""
    write("tools.py", TOOLS)
    return write("dsh.toml", '[[plugin]]\nid = "kit"\nuse = "./tools.py"\n')


def test_a_call_prints_what_the_model_would_see(run: Run, greet: Path) -> None:
    """Content on stdout, exit code 0, nothing on stderr."""
    assert run("call", "greet", "name=Ada") == (0, "Hello, Ada!\n", "")


def test_arguments_come_from_json_or_from_stdin(run: Run, greet: Path, piped: Callable[[bytes], None]) -> None:
    """--json, --json -, and a pipe where nothing else is given."""
    assert run("call", "greet", "--json", '{"name": "Bob"}').out == "Hello, Bob!\n"
    piped(b'{"name": "Eve"}')
    assert run("call", "greet", "--json", "-").out == "Hello, Eve!\n"
    piped('{"name": "Zoë"}'.encode())
    assert run("call", "greet").out == "Hello, Zoë!\n"


def test_a_pipe_is_left_alone_where_arguments_are_given(run: Run, greet: Path, piped: Callable[[bytes], None]) -> None:
    """A loop that reads its own stdin keeps it."""
    piped(b"not for us")
    assert run("call", "greet", "name=Ada").out == "Hello, Ada!\n"


def test_an_empty_pipe_is_no_arguments(run: Run, tools: Path, piped: Callable[[bytes], None]) -> None:
    """As under cron."""
    piped(b"\n")
    assert run("call", "crash").code == 1


def test_a_tool_without_parameters_never_reads_stdin(run: Run, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe that nobody writes to or closes holds nothing up."""
    reading, writing = os.pipe()
    try:
        with open(reading, encoding="utf-8") as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert run("call", "crash").code == 1
    finally:
        os.close(writing)


def test_a_command_that_waits_for_stdin_says_so(run: Run, tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And how to give no arguments."""
    monkeypatch.setattr("dsh_runtime.cli.arguments.STDIN_PATIENCE", 0.01)
    reading, writing = os.pipe()
    late = threading.Timer(0.5, os.close, [writing])
    with open(reading, encoding="utf-8") as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        late.start()
        ended = run("call", "shout")
    hint = "for a call without arguments, give --json '{}' or </dev/null"
    assert f"note: waiting for the arguments on stdin; {hint}\n" in ended.err


@pytest.mark.parametrize("text", ["not for us", "[]"])
def test_stdin_that_holds_something_else_is_refused(
    run: Run, tools: Path, piped: Callable[[bytes], None], text: str
) -> None:
    """With the way around it."""
    piped(text.encode())
    ended = run("call", "shout")
    assert ended.code == 2
    assert "--json '{}'" in ended.err and "</dev/null" in ended.err


@pytest.mark.parametrize("text", ['{"name": "Ada", "name": "Bob"}', '{"name": {"a": [{"b": 1, "b": 1}]}}'])
@pytest.mark.parametrize("way", ["--json", "stdin", "pair"])
def test_a_key_that_occurs_twice_is_refused(
    run: Run, greet: Path, piped: Callable[[bytes], None], text: str, way: str
) -> None:
    """JSON in, JSON on: nothing is dropped without a word."""
    piped(text.encode())
    ended = run("call", "greet", *{"--json": ("--json", text), "stdin": (), "pair": (f"name:={text}",)}[way])
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    if way != "pair":
        assert "occurs twice in one object" in ended.err


def test_stdin_that_is_no_text_is_refused(run: Run, greet: Path, piped: Callable[[bytes], None]) -> None:
    """With what would do."""
    piped(b'{"name": "\xff"}')
    ended = run("call", "greet")
    assert ended.code == 2
    assert ended.err.startswith("error: stdin does not hold text: ")


def test_a_success_as_json_is_one_document_with_every_member(run: Run, tools: Path) -> None:
    """Value, content, meta and contexts."""
    ended = run("call", "look", "n=3", "--output", "json")
    assert ended.code == 0
    assert json.loads(ended.out) == {
        "is_error": False,
        "content": [
            {"type": "text", "text": "seen\x1b[2J"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ],
        "value": {"n": 3},
        "error": None,
        "meta": {"title": "n"},
        "additional_contexts": [{"content": [{"type": "text", "text": "more"}], "source": "look", "meta": None}],
    }
    assert ended.out.count("\n") == 1


def test_a_failure_as_json_is_one_document_with_every_member(run: Run, tools: Path) -> None:
    """On stdout too, with exit code 1."""
    ended = run("--output", "json", "call", "fail", "message=no")
    assert (ended.code, ended.err) == (1, "")
    assert json.loads(ended.out) == {
        "is_error": True,
        "content": [{"type": "text", "text": "Error: no"}],
        "value": None,
        "error": {"message": "no", "name": "HarnessError", "code": "NO_LUCK", "plugin": "kit"},
        "meta": None,
        "additional_contexts": [],
    }


def test_content_that_is_no_text_is_named(run: Run, tools: Path) -> None:
    """Piped text stays as it is."""
    assert run("call", "look", "n=3").out == "seen\x1b[2J\n[image image/png]\n"


def test_a_failure_is_one_line_with_code_and_plugin(run: Run, tools: Path) -> None:
    """On stderr, with exit code 1."""
    assert run("call", "fail", "message=no") == (1, "", "error: tool 'fail' failed [NO_LUCK] by plugin 'kit': no\n")
    assert run("call", "crash") == (1, "", "error: tool 'crash' failed by plugin 'kit': two lines\n")


def test_policys_own_words_are_shown(run: Run, tools: Path) -> None:
    """A blocked result says who blocked it, and what the model is told."""
    ended = run("call", "shout", "text=secret")
    assert ended.code == 1
    assert "[BLOCKED] by plugin 'kit'" in ended.err
    assert "That is not for you." in ended.out + ended.err


def test_what_a_tool_prints_does_not_reach_stdout(run: Run, tools: Path) -> None:
    """Stdout is the command's own."""
    ended = run("call", "shout", "text=ab", "times=2", "-o", "json")
    assert json.loads(ended.out)["value"] == "abab"
    assert ended.err == "a stray line\n"


def test_wrong_arguments_are_a_failed_call(run: Run, tools: Path) -> None:
    """The call entered, so policy and audit have seen it: exit code 1."""
    ended = run("call", "shout", "times=2")
    assert ended.code == 1
    assert "[INVALID_ARGS]" in ended.err and "text: is required and missing" in ended.err


def test_an_unknown_tool_is_a_mistake_of_the_command_line(run: Run, greet: Path) -> None:
    """One line, with the nearest name."""
    assert run("call", "gret", "name=Ada") == (
        2,
        "",
        "error: no plugin offers a tool 'gret' ('dsh-run tools' lists them); did you mean 'greet'?\n",
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("name",), "argument 'name' is no key=value; write name=text, name:=JSON, or the whole as --json '{…}'"),
        (("--json", "[1]"), "--json holds an array; the arguments of a call are one JSON object"),
        (
            ("--json", "{name: 1}"),
            "--json does not hold JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1); "
            'give one JSON object, such as \'{"name": "Ada"}\'',
        ),
    ],
)
def test_arguments_that_cannot_be_read_are_refused_in_one_line(
    run: Run, greet: Path, args: tuple[str, ...], message: str
) -> None:
    """Exit code 2."""
    assert run("call", "greet", *args) == (2, "", f"error: {message}\n")


def test_a_denied_call_names_the_gate(run: Run, write: Write) -> None:
    """The body does not run, exit code 1."""
    write(
        "dsh.toml",
        '[[plugin]]\nid = "greet"\nuse = "greet"\n[[plugin]]\nid = "gate"\nuse = "permission-gate"\n'
        '[plugin.config]\ndefault = "deny"\n',
    )
    ended = run("call", "greet", "name=Ada")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: tool 'greet' failed [DENIED] by plugin 'gate': ")


def test_an_asked_call_without_a_person_is_denied(run: Run, write: Write) -> None:
    """Silence is no yes."""
    write(
        "dsh.toml",
        '[[plugin]]\nid = "greet"\nuse = "greet"\n[[plugin]]\nid = "gate"\nuse = "permission-gate"\n'
        '[plugin.config]\ndefault = "ask"\n',
    )
    ended = run("call", "greet", "name=Ada", "-o", "json")
    assert ended.code == 1
    assert json.loads(ended.out)["error"]["code"] == "APPROVAL_UNAVAILABLE"
