"""Where output goes, and how it looks."""

from __future__ import annotations

import io
import json
import sys

import pytest

from dsh_runtime.cli.output import Output


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def make_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Let stdout be a terminal."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return stream


def test_a_terminal_gets_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    """By rich."""
    terminal = make_terminal(monkeypatch)
    Output().line(("deny", "red"), " it")
    assert "\x1b[31mdeny\x1b[0m it" in terminal.getvalue()


def test_a_dumb_terminal_and_a_pipe_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain text."""
    terminal = make_terminal(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    output = Output()
    output.line(("deny", "red"), " it")
    assert (output.look, terminal.getvalue()) == ("plain", "deny it\n")


def test_brackets_are_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote them."""
    terminal = make_terminal(monkeypatch)
    Output().line("[red]x[/red] :smile:")
    assert terminal.getvalue() == "[red]x[/red] :smile:\n"


def test_escape_sequences_of_a_tool_do_not_reach_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """But a pipe gets what the tool said."""
    terminal = make_terminal(monkeypatch)
    Output().text("a\x1b[2Jb")
    assert terminal.getvalue() == "a\\x1b[2Jb\n"


def test_text_of_a_tool_goes_into_a_pipe_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """With a newline at its end."""
    output = Output()
    output.text("a\x1b[2Jb")
    output.text("c\n")
    output.text("")
    assert capsys.readouterr().out == "a\x1b[2Jb\nc\n"


def test_a_document_is_one_line_in_a_pipe_and_several_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON either way; escape sequences are escaped."""
    terminal = make_terminal(monkeypatch)
    Output("json").document({"a": "\x1b\x9b"})
    assert terminal.getvalue() == '{\n  "a": "\\u001b\\u009b"\n}\n'
    assert json.loads(terminal.getvalue()) == {"a": "\x1b\x9b"}


def test_what_an_encoding_cannot_say_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text as an escape, JSON as JSON."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    Output("plain").line("Grüße")
    Output("json").document("Grüße")
    assert raw.getvalue() == b'Gr\\xfc\\xdfe\n"Gr\\u00fc\\u00dfe"\n'


def test_a_closed_stdout_takes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has no stream there."""
    monkeypatch.setattr(sys, "stdout", None)
    Output().line("x")
    Output("json").document({})
    Output("rich").line("x")
