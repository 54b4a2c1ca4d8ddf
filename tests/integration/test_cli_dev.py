"""``dsh-run dev`` as its user has it: a process, an editor, Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import queue
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")
PATIENCE = 25.0

HELLO = '''
from dsh_runtime import tool

inject = ["tools"]


@tool
def hello(name: str) -> str:
    """Greet."""
    return {answer}


def apply(ctx):
    ctx.tools.register(hello)
'''
CALL = ("--call", "hello name=Ada")


def hello(word: str) -> str:
    """A plugin whose tool greets with a word."""
    return HELLO.format(answer=f"f'{word}, {{name}}!'")


class Dev:
    """A running ``dsh-run dev``, of which each line is waited for."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [DSH_RUN, "dev", *args],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "", "XDG_CONFIG_HOME": str(folder / "no-config")},
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        self.out = _lines_of(self.process.stdout)
        self.err = _lines_of(self.process.stderr)

    def until(self, wanted: str) -> list[str]:
        """The lines up to the first that has ``wanted`` in it."""
        return _until(self.out, wanted)

    def until_told(self, wanted: str) -> list[str]:
        """The same, of stderr."""
        return _until(self.err, wanted)

    def interrupt(self) -> tuple[int, list[str]]:
        """Ctrl-C: the exit code, and what was still said on stderr."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=PATIENCE)
        return code, [line for line in iter(self.err.get, None) if line is not None]


def _lines_of(stream: IO[str]) -> queue.Queue[str | None]:
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in stream:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _until(lines: queue.Queue[str | None], wanted: str) -> list[str]:
    seen: list[str] = []
    while not seen or wanted not in seen[-1]:
        try:
            line = lines.get(timeout=PATIENCE)
        except queue.Empty:
            pytest.fail(f"no {wanted!r} in {seen}")
        assert line is not None, f"no {wanted!r} in {seen}"
        seen.append(line)
    return seen


Start = Callable[..., Dev]


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Start]:
    """Start ``dsh-run dev`` in the test's folder; none outlives the test."""
    started: list[Dev] = []

    def start(*args: str) -> Dev:
        started.append(Dev(tmp_path, *args))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()


def test_a_save_is_seen_in_the_outcome_of_the_call(dev: Start, tmp_path: Path) -> None:
    """Start, save, mistake, good save; the call is made again after each."""
    file = tmp_path / "hello.py"
    file.write_text(hello("Hello"))
    running = dev("hello.py", *CALL)
    assert running.until("call ") == [
        "hello is active (tools: hello)",
        "watching hello.py; Ctrl-C ends",
        "call hello name=Ada: Hello, Ada!",
    ]
    file.write_text(hello("Hej"))
    first, second = running.until("call ")
    assert re.fullmatch(r"reloaded hello \(\d+ ms\): hello.py changed", first)
    assert second == "call hello name=Ada: Hej, Ada!"
    file.write_text(hello("Never").replace("def apply(ctx):", "def apply(ctx:"))
    told, answer = running.until("call ")
    assert told.startswith(f"error: kept hello as it was: {file}:13: plugin 'hello' raised SyntaxError")
    assert answer == "call hello name=Ada: Hej, Ada!"
    file.write_text(hello("Moin"))
    assert running.until("call ")[-1] == "call hello name=Ada: Moin, Ada!"
    assert running.interrupt() == (0, [])


def test_a_tool_that_fails_is_told_with_its_line(dev: Start, tmp_path: Path) -> None:
    """And so is a tool that is not there."""
    (tmp_path / "hello.py").write_text(HELLO.format(answer="str(1 / 0)"))
    running = dev("hello.py", *CALL, "--call", "helo name=Ada")
    assert running.until("helo")[-2:] == [
        f"error: call hello name=Ada: tool 'hello' failed by plugin 'hello': division by zero ({tmp_path}/hello.py:10)",
        "error: call helo name=Ada: no plugin offers a tool 'helo' ('dsh-run tools' lists them); did you mean 'hello'?",
    ]


def test_a_file_with_no_plugin_is_told_and_the_next_save_is_taken(dev: Start, tmp_path: Path) -> None:
    """Somebody has just begun."""
    file = tmp_path / "hello.py"
    file.write_text("# later\n")
    running = dev("hello.py", *CALL)
    assert "is no plugin: it has neither apply(ctx) nor @hookimpl functions" in running.until("is no plugin")[-1]
    running.until("call ")
    file.write_text(hello("Hello"))
    assert running.until("call ")[-1] == "call hello name=Ada: Hello, Ada!"


@pytest.mark.parametrize("statement", ["raise KeyboardInterrupt", "import sys; sys.exit('bye')"])
def test_a_new_version_that_ends_the_process_ends_nothing(dev: Start, tmp_path: Path, statement: str) -> None:
    """It is told, and the old one answers."""
    file = tmp_path / "hello.py"
    file.write_text(hello("Hello"))
    running = dev("hello.py", *CALL)
    running.until("call ")
    file.write_text(hello("Never").replace("    ctx.tools", f"    {statement}\n    ctx.tools"))
    told, answer = running.until("call ")
    assert f"{file}:14: plugin 'hello' failed: " in told
    assert "a plugin cannot end the host" in told
    assert answer == "call hello name=Ada: Hello, Ada!"
    assert running.interrupt() == (0, [])


def test_a_tool_that_raises_an_interrupt_of_its_own_ends_nothing(dev: Start, tmp_path: Path) -> None:
    """Ctrl-C is a signal here; whatever else looks like it is a mistake of the author's."""
    file = tmp_path / "hello.py"
    file.write_text("def boom():\n    raise KeyboardInterrupt\n" + HELLO.format(answer="boom()"))
    running = dev("hello.py", *CALL)
    told = running.until("call ")[-1]
    assert told.startswith(f"error: call hello name=Ada: KeyboardInterrupt was raised at {file}:2; a plugin cannot end")
    file.write_text(hello("Hej"))
    assert running.until("Hej")[-1] == "call hello name=Ada: Hej, Ada!"


def test_a_plugin_that_blocks_is_named_with_the_place(dev: Start, tmp_path: Path) -> None:
    """After a second, while it does."""
    source = HELLO.format(answer="__import__('time').sleep(2) or 'late'").replace("def hello", "async def hello")
    (tmp_path / "hello.py").write_text(source)
    running = dev("hello.py", *CALL)
    told = running.until_told("held the event loop")[-1]
    assert told.startswith(f"warning: plugin 'hello' at {tmp_path}/hello.py:10 (in hello) has held the event loop")
    assert running.until("call ")[-1] == "call hello name=Ada: late"


def test_a_folder_that_disappears_is_told_and_taken_up_when_it_is_back(dev: Start, tmp_path: Path) -> None:
    """What was loaded goes on meanwhile."""
    folder = tmp_path / "greeting"
    folder.mkdir()
    (folder / "__init__.py").write_text(hello("Hello"))
    running = dev("./greeting", *CALL)
    running.until("call ")
    shutil.move(folder, tmp_path / "away")
    assert f"folder {folder} is gone: what is loaded stays" in running.until("is gone")[-1]
    (tmp_path / "away" / "__init__.py").write_text(hello("Hej"))
    shutil.move(tmp_path / "away", folder)
    running.until(f"folder {folder} is back")
    assert running.until("Hej")[-1] == "call hello name=Ada: Hej, Ada!"


def test_the_current_folder_disappears_and_comes_back(dev: Start, tmp_path: Path) -> None:
    """As in a checkout of another version; the config is found again by where it was."""
    (tmp_path / "hello.py").write_text(hello("Hello"))
    (tmp_path / "dsh.toml").write_text('[[plugin]]\nid = "mine"\nuse = "./hello.py"\n')
    running = dev(*CALL)
    running.until("call ")
    shutil.rmtree(tmp_path)
    running.until(f"folder {tmp_path} is gone")
    tmp_path.mkdir()
    (tmp_path / "dsh.toml").write_text('[[plugin]]\nid = "yours"\nuse = "./hello.py"\n')
    (tmp_path / "hello.py").write_text(hello("Hej"))
    running.until("added yours")
    assert running.until("Hej")[-1] == "call hello name=Ada: Hej, Ada!"
    code, told = running.interrupt()
    assert (code, [line for line in told if "fault" in line]) == (0, [])


def test_a_project_is_run_from_its_source_with_its_own_config(dev: Start, tmp_path: Path) -> None:
    """Uninstalled, by its entry point; an error deep inside is seen, and mended there."""
    package = tmp_path / "src" / "my_greeting"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "words.py").write_text("WORD = 'Hello'\n")
    (package / "__init__.py").write_text(
        "from my_greeting.inner.words import WORD\n" + HELLO.format(answer="f'{WORD}, {name}!'")
    )
    (tmp_path / "pyproject.toml").write_text('[project.entry-points."dsh.plugins"]\ngreeting = "my_greeting"\n')
    (tmp_path / "dsh.toml").write_text('[[plugin]]\nid = "mine"\nuse = "greeting"\n')
    running = dev(*CALL)
    assert running.until("call ") == [
        "mine is active (tools: hello)",
        f"watching {tmp_path}, dsh.toml; Ctrl-C ends",
        "call hello name=Ada: Hello, Ada!",
    ]
    (package / "inner" / "words.py").write_text("WORD = \n")
    assert f"{package}/inner/words.py:1" in running.until("kept mine")[-1]
    (package / "inner" / "words.py").write_text("WORD = 'Hej'\n")
    assert running.until("Hej")[-1] == "call hello name=Ada: Hej, Ada!"


def test_a_first_version_with_a_mistake_deep_inside_is_mended_there(dev: Start, tmp_path: Path) -> None:
    """What could not be imported is watched all the same."""
    package = tmp_path / "src" / "my_greeting"
    (package / "inner").mkdir(parents=True)
    (package / "inner" / "words.py").write_text("WORD = \n")
    (package / "__init__.py").write_text(
        "from my_greeting.inner.words import WORD\n" + HELLO.format(answer="f'{WORD}, {name}!'")
    )
    (tmp_path / "pyproject.toml").write_text('[project.entry-points."dsh.plugins"]\ngreeting = "my_greeting"\n')
    running = dev(".", *CALL)
    assert f"{package}/inner/words.py:1" in running.until("error: ")[-1]
    running.until("call ")
    (package / "inner" / "words.py").write_text("WORD = 'Hej'\n")
    assert running.until("Hej")[-1] == "call hello name=Ada: Hej, Ada!"


def test_the_config_is_watched_too(dev: Start, tmp_path: Path) -> None:
    """A plugin that it brings is taken up beside the one that is worked on."""
    (tmp_path / "hello.py").write_text(hello("Hello"))
    (tmp_path / "dsh.toml").write_text("")
    running = dev("hello.py", "--call", "greet name=Bo")
    running.until("call ")
    (tmp_path / "dsh.toml").write_text('[[plugin]]\nid = "greet"\nuse = "greet"\n')
    assert running.until("call ") == ["added greet", "call greet name=Bo: Hello, Bo!"]
    (tmp_path / "dsh.toml").write_text("[hots]\n")
    assert "dsh.toml:1: hots:" in running.until("error: ")[-1]


def test_secrets_in_what_came_of_a_call_are_masked(dev: Start, tmp_path: Path) -> None:
    """Where the config has a redactor."""
    (tmp_path / "hello.py").write_text(hello("password=hunter2 for"))
    (tmp_path / "dsh.toml").write_text('[[plugin]]\nid = "redact"\nuse = "redact"\n')
    running = dev("hello.py", *CALL)
    assert running.until("call ")[-1] == "call hello name=Ada: password=[redacted: secret] for, Ada!"


def test_a_config_that_is_emptied_or_deleted_unloads_nothing(dev: Start, tmp_path: Path) -> None:
    """It is a save that is half done, or a mistake: policy stays, and what comes back is taken up."""
    (tmp_path / "hello.py").write_text(hello("Hello"))
    config = '[[plugin]]\nid = "gate"\nuse = "permission-gate"\nconfig = { default = "deny" }\n'
    (tmp_path / "dsh.toml").write_text(config)
    running = dev("hello.py", *CALL)
    assert "by default: no rule covers this call" in running.until("call ")[-1]
    for spoil, told in ((lambda file: file.write_text(""), "the file is empty"), (Path.unlink, "does not exist")):
        spoil(tmp_path / "dsh.toml")
        assert told in running.until("the config is not in force")[-1]
        assert "by default: no rule covers this call" in running.until("call ")[-1]
    (tmp_path / "dsh.toml").write_text(config.replace("deny", "allow"))
    assert running.until("Hello")[-1] == "call hello name=Ada: Hello, Ada!"


def test_a_tool_that_cannot_be_stopped_is_waited_for_and_a_second_interruption_ends_at_once(
    dev: Start, tmp_path: Path
) -> None:
    """It is said why the end takes its time."""
    (tmp_path / "hello.py").write_text(HELLO.format(answer="print('begun') or __import__('time').sleep(600)"))
    running = dev("hello.py", *CALL)
    running.until_told("begun")
    running.process.send_signal(signal.SIGINT)
    assert "another interruption ends at once" in running.until_told("still under way that cannot be stopped")[-1]
    assert running.interrupt() == (130, [])


def test_programs_read_a_document_a_line(dev: Start, tmp_path: Path) -> None:
    """With ``--output json``."""
    (tmp_path / "hello.py").write_text(hello("Hello"))
    running = dev("hello.py", *CALL, "-o", "json")
    documents = [json.loads(line) for line in running.until('"event": "call"')]
    assert documents[0] == {"event": "up", "message": "hello is active (tools: hello)"}
    del documents[-1]["milliseconds"]
    assert documents[-1] == {"event": "call", "call": "hello name=Ada", "ok": True, "message": "Hello, Ada!"}


def test_what_plugins_print_goes_to_stderr(dev: Start, tmp_path: Path) -> None:
    """Stdout is for what is shown."""
    (tmp_path / "hello.py").write_text("print('imported')\n" + hello("Hello"))
    running = dev("hello.py", *CALL)
    running.until_told("imported")
    assert running.until("call ")[-1] == "call hello name=Ada: Hello, Ada!"


def test_thousands_of_files_beside_the_plugin_cost_nothing(dev: Start, tmp_path: Path) -> None:
    """They are not looked at; those of tools and environments not even listed."""
    (tmp_path / "hello.py").write_text(hello("Hello"))
    for folder in (".git", "venv", "data"):
        (tmp_path / folder).mkdir()
        for number in range(1_000):
            (tmp_path / folder / f"f{number}.py").touch()
    for number in range(2_000):
        (tmp_path / f"data{number}.txt").touch()
    running = dev("hello.py", *CALL)
    running.until("call ")
    (tmp_path / "hello.py").write_text(hello("Hej"))
    assert running.until("call ")[-1] == "call hello name=Ada: Hej, Ada!"


def test_without_watchfiles_it_says_what_to_install(tmp_path: Path) -> None:
    """One line, exit code 2."""
    (tmp_path / "hello.py").write_text(hello("Hello"))
    program = (
        "import sys; sys.modules['watchfiles'] = None; from dsh_runtime.cli.main import main; "
        "sys.exit(main(['dev', 'hello.py']))"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "error: watching files needs watchfiles, which is not installed; install dsh-runtime[dev]\n"
    )


def test_one_screen_on_a_terminal(tmp_path: Path) -> None:
    """Plugins, calls, errors and changes, drawn anew; the cursor is given back at the end."""
    (tmp_path / "hello.py").write_text(hello("Hello"))
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.environ.update(TERM="xterm", COLUMNS="400", LINES="40")
        os.execv(DSH_RUN, [DSH_RUN, "dev", "hello.py", *CALL])
    seen = _read_until(terminal, "Hello, Ada!")
    assert re.search(r"\*hello +active +hello", seen)
    (tmp_path / "hello.py").write_text("def apply(ctx:\n")
    assert "errors" in _read_until(terminal, "hello.py:1: plugin 'hello' raised SyntaxError")
    (tmp_path / "hello.py").write_text(hello("Hej"))
    _read_until(terminal, "Hej, Ada!")
    os.write(terminal, b"\x03")
    seen = _read_until(terminal, None)
    assert "\x1b[?25h" in seen
    assert "error: interrupted" not in seen
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _read_until(terminal: int, wanted: str | None) -> str:
    """What comes from a terminal, to its end without ``wanted``."""
    said = b""
    while wanted is None or wanted not in said.decode(errors="replace"):
        assert select.select([terminal], [], [], PATIENCE)[0], said
        try:
            said += os.read(terminal, 65_536)
        except OSError:  # The other end has gone.
            break
    text = said.decode(errors="replace")
    assert wanted is None or wanted in text, text
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
