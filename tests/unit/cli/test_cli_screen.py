"""A call on a terminal: its card, a bar while it runs, the card of its result."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str, str], Path]

TOOLS = '''
import trio
from dsh_hookspecs import DiffCall, DiffResult, FileDiff, HarnessError, TerminalCall, TerminalResult
from dsh_runtime import define_tool, tool

inject = ["tools"]


async def work(args, exec):
    for number in range(1, 4):
        exec.progress(number, 3, f"s3cret {number}\\x1b[2J")
        await trio.sleep(0.12)
    if args["fail"]:
        raise HarnessError("it did not work", code="NO_LUCK")
    return "token s3cret"


@tool
async def lines(number: int) -> str:
    """Many lines."""
    return "line\\n" * number


def apply(ctx):
    ctx.tools.register(lines)
    ctx.tools.register(define_tool(
        name="work", description="Work.", parameters={"fail": {"type": "boolean", "required": True}},
        output={"type": "string"}, execute=work,
        present_call=lambda args: TerminalCall(title="make s3cret", cwd="/srv"),
        present_result=lambda args, result: None if not result.is_error else TerminalResult(output="log", exit_code=2),
    ))
'''

REDACT = """
class Redactor:
    def text(self, text):
        return text.replace("s3cret", "***")

    def value(self, value):
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(member) for key, member in value.items()}
        return [self.value(item) for item in value] if isinstance(value, (list, tuple)) else value


def apply(ctx):
    ctx.provide("redact", Redactor())
"""


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run ``dsh-run call`` with stdout as a terminal; give what it shows, without colours."""
    write("tools.py", TOOLS)
    write("redact.py", REDACT)
    write("dsh.toml", '[[plugin]]\nid = "kit"\nuse = "./tools.py"\n')
    for name, value in (("TERM", "xterm"), ("COLUMNS", "60"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)

    def shown(*args: str, code: int = 0) -> str:
        stream = Terminal()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stream)
            ended = run("call", *args)
        assert ended.code == code, ended.err
        return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())

    return shown


def test_a_call_shows_its_card_and_the_card_of_its_result(terminal: Callable[..., str]) -> None:
    """The pending title stays where the result has none; the bar is gone in the end."""
    text = terminal("work", "fail=false")
    before, *bars, after = text.split("\r\x1b[2K")
    assert before == "╭ $ make s3cret\n│ in /srv\n╰\n"
    assert after == "╭ make s3cret\n│ token s3cret\n╰\n"
    assert [bar.split()[-3:] for bar in bars] == [
        [f"{share}%", "s3cret", f"{number}\\x1b[2J"] for number, share in ((1, 33), (2, 67), (3, 100))
    ]


def test_a_failure_shows_its_line_and_the_tools_own_card(
    terminal: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The line goes to stderr as ever."""
    text = terminal("work", "fail=true", code=1)
    assert text.endswith("╭ $ make s3cret\n│ log\n╰ failed · exit 2\n")


def test_a_call_that_is_cut_says_how_to_see_all(terminal: Callable[..., str]) -> None:
    """A terminal is not flooded."""
    text = terminal("lines", "number=1000")
    assert "… 600 more lines\n╰\nNot everything is shown; --output plain shows it as it is.\n" in text
    assert terminal("lines", "number=1000", "--output", "plain").count("line\n") == 1000


def test_arguments_that_the_tool_refuses_have_no_card(terminal: Callable[..., str]) -> None:
    """Nor a complaint about the card."""
    assert terminal("lines", "number=true", code=1) == ""


def test_secrets_are_masked_in_cards_and_bars(terminal: Callable[..., str], write: Write) -> None:
    """Where the host has a redactor."""
    write("dsh.toml", '[[plugin]]\nid = "redact"\nuse = "./redact.py"\n[[plugin]]\nid = "kit"\nuse = "./tools.py"\n')
    text = terminal("work", "fail=false")
    assert "s3cret" not in text
    assert "make ***" in text
    assert "token ***" in text
    assert "33% *** 1" in " ".join(text.split())
