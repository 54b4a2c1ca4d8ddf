"""``dsh-run call`` at a terminal, and a call that somebody has to allow."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import sysconfig
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import define, field

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")
GREET = '[[plugin]]\nid = "greet"\nuse = "greet"\n'
GATE = '[[plugin]]\nid = "gate"\nuse = "permission-gate"\n[plugin.config]\ndefault = "ask"\n'
TIMEOUT = '[[plugin]]\nid = "timeout"\nuse = "timeout"\n'
OFF = '[[plugin]]\nid = "approval-terminal"\nuse = "approval-terminal"\nenabled = false\n'
QUESTION = "show [a]ll: "
PATIENCE = 20


@define(eq=False)
class Terminal:
    """A terminal and the command that was typed at it."""

    master: int
    slave: int
    process: subprocess.Popen[bytes] = field(init=False)
    shown: str = ""

    def run(self, *words: str, directory: Path, **streams: int) -> None:
        """Run a command at the terminal: in a session of its own, whose controlling terminal it is."""

        def take() -> None:
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

        everything = {"stdin": self.slave, "stdout": self.slave, "stderr": self.slave, **streams}
        self.process = subprocess.Popen(
            [DSH_RUN, *words],
            cwd=directory,
            start_new_session=True,
            preexec_fn=take,
            **everything,  # type: ignore[call-overload]
        )

    def sees(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        until = time.monotonic() + PATIENCE
        while text not in self.shown:
            ready, _, _ = select.select([self.master], [], [], max(0, until - time.monotonic()))
            assert ready, f"the terminal shows:\n{self.shown}"
            self.shown += os.read(self.master, 65536).decode()

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ends(self) -> int:
        """Wait for the end of the command; give back its exit code."""
        return self.process.wait(PATIENCE)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    master, slave = pty.openpty()
    terminal = Terminal(master, slave)
    try:
        yield terminal
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(master)
        os.close(slave)


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., Path]:
    """Write a config; give back its directory."""

    def write(*plugins: str) -> Path:
        (tmp_path / "dsh.toml").write_text("".join(plugins))
        return tmp_path

    return write


@pytest.mark.parametrize("plugins", [(GREET, GATE), (GREET, TIMEOUT, GATE)], ids=["bare", "beside a timeout"])
def test_whoever_typed_the_call_is_asked(terminal: Terminal, config: Callable[..., Path], plugins: tuple[str]) -> None:
    """A plugin that only watches questions is nobody to ask."""
    terminal.run("call", "greet", "name=Ada", directory=config(*plugins))
    terminal.sees(QUESTION)
    terminal.type("y")
    terminal.sees("Hello, Ada!")
    assert terminal.ends() == 0


def test_a_no_is_a_no(terminal: Terminal, config: Callable[..., Path]) -> None:
    terminal.run("call", "greet", "name=Ada", directory=config(GREET, GATE))
    terminal.sees(QUESTION)
    terminal.type("n")
    terminal.sees("APPROVAL_REJECTED")
    assert terminal.ends() == 1
    assert "Hello" not in terminal.shown


def test_an_interrupt_at_the_question_ends_the_command(terminal: Terminal, config: Callable[..., Path]) -> None:
    """As it does elsewhere; the terminal is as it was."""
    modes = termios.tcgetattr(terminal.slave)
    terminal.run("call", "greet", "name=Ada", directory=config(GREET, GATE))
    terminal.sees(QUESTION)
    terminal.type("\x03")
    assert terminal.ends() == 130
    terminal.sees("interrupted by SIGINT")
    assert "Hello" not in terminal.shown
    assert termios.tcgetattr(terminal.slave) == modes


def test_the_question_is_asked_beside_pipes(terminal: Terminal, config: Callable[..., Path]) -> None:
    """What is piped in and out stays clean."""
    reader, writer = os.pipe()
    given, giver = os.pipe()
    os.write(giver, b'{"name": "Ada"}')
    os.close(giver)
    terminal.run("call", "greet", directory=config(GREET, GATE), stdin=given, stdout=writer)
    os.close(writer)
    os.close(given)
    terminal.sees(QUESTION)
    terminal.type("y")
    assert terminal.ends() == 0
    with open(reader, "rb") as output:
        assert output.read() == b"Hello, Ada!\n"


def test_where_nobody_reads_along_nobody_is_asked(terminal: Terminal, config: Callable[..., Path]) -> None:
    """Although there is a terminal somewhere."""
    reader, writer = os.pipe()
    terminal.run("call", "greet", "name=Ada", directory=config(GREET, GATE), stdout=writer, stderr=writer)
    os.close(writer)
    assert terminal.ends() == 1
    with open(reader, "rb") as output:
        assert b"APPROVAL_UNAVAILABLE" in output.read()


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("y", ["by plugin 'approval-terminal'", "2 notes.txt", "You said yes, so this one call ran."]),
        ("n", ["by plugin 'approval-terminal'", "APPROVAL_REJECTED", "You said no: the command never ran."]),
    ],
    ids=["yes", "no"],
)
def test_the_demo_asks_whoever_takes_it(terminal: Terminal, tmp_path: Path, key: str, told: list[str]) -> None:
    """Once, about the shell command; either answer is a good tour."""
    terminal.run("demo", directory=tmp_path)
    terminal.sees(QUESTION)
    assert "wc -w notes.txt" in terminal.shown
    terminal.type(key)
    terminal.sees("dsh-run check")
    assert terminal.ends() == 0
    assert terminal.shown.count(QUESTION) == 1
    assert [text for text in told if text not in terminal.shown] == []
    assert "Not as promised" not in terminal.shown


def test_the_question_is_asked_beside_an_mcp_client(terminal: Terminal, config: Callable[..., Path]) -> None:
    """Its messages have the pipes, the person has the terminal."""
    channel = '[[plugin]]\nid = "approval-terminal"\nuse = "approval-terminal"\n'
    reader, writer = os.pipe()
    given, giver = os.pipe()
    terminal.run("mcp", directory=config(GREET, GATE, channel), stdin=given, stdout=writer)
    os.close(writer)
    os.close(given)
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "desk", "version": "1"}}
    for message in (
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "greet", "arguments": {"name": "Ada"}}},
    ):
        os.write(giver, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    terminal.sees(QUESTION)
    terminal.type("y")
    with open(reader, encoding="utf-8") as answers:
        assert json.loads(answers.readline())["id"] == 1
        answer = json.loads(answers.readline())
        assert answer["result"]["content"] == [{"type": "text", "text": "Hello, Ada!"}]
        os.close(giver)
        assert answers.read() == ""
    assert terminal.ends() == 0


def test_what_a_person_reads_is_masked_and_a_pipe_is_not(terminal: Terminal, config: Callable[..., Path]) -> None:
    """Where there is a redactor."""
    redact = '[[plugin]]\nid = "redact"\nuse = "redact"\n'
    words = ("call", "-o", "plain", "greet", "name=password=hunter2")
    terminal.run(*words, directory=config(GREET, redact))
    terminal.sees("Hello, password=[redacted: secret]")
    assert terminal.ends() == 0
    assert "hunter2" not in terminal.shown
    piped = subprocess.run([DSH_RUN, *words], cwd=config(GREET, redact), capture_output=True, check=True, timeout=60)
    assert piped.stdout == b"Hello, password=hunter2!\n"


def test_the_demo_asks_nobody_where_nobody_reads_along(terminal: Terminal, tmp_path: Path) -> None:
    """It is piped somewhere: the call is refused, the tour ends well."""
    reader, writer = os.pipe()
    terminal.run("demo", directory=tmp_path, stdout=writer, stderr=writer)
    os.close(writer)
    with open(reader, "rb") as output:
        shown = output.read()
    assert terminal.ends() == 0
    assert b"There is no terminal to ask anybody at." in shown
    assert b"Nobody is there, so the call was refused" in shown


@pytest.mark.parametrize("plugins", [(GREET, GATE, OFF)], ids=["switched off"])
def test_the_config_has_the_last_word(terminal: Terminal, config: Callable[..., Path], plugins: tuple[str]) -> None:
    """A channel that is switched off stays so."""
    terminal.run("call", "greet", "name=Ada", directory=config(*plugins))
    terminal.sees("APPROVAL_UNAVAILABLE")
    assert terminal.ends() == 1


def test_a_configured_channel_is_the_only_one(terminal: Terminal, config: Callable[..., Path], tmp_path: Path) -> None:
    """Whoever it is that it asks."""
    (tmp_path / "chat.py").write_text('def apply(ctx):\n    ctx.on("approval/request", lambda next: "rejected")\n')
    chat = '[[plugin]]\nid = "chat"\nuse = "./chat.py"\n'
    terminal.run("call", "greet", "name=Ada", directory=config(GREET, GATE, chat))
    terminal.sees("APPROVAL_REJECTED")
    assert terminal.ends() == 1
    assert QUESTION not in terminal.shown
