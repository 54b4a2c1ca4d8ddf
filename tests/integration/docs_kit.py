"""Reads the code blocks of a Markdown page and runs them, as a reader of the page would.

The convention of README.md, CONTRIBUTING.md and docs/:

- A block whose first line is a comment with a file's name (``# notes.py``, ``# dsh.toml``) is written to that file.
  A Python file is imported, too, unless it is a program for Code Mode, which has ``await`` or ``return`` at its top.
- Any other ``python`` block is a program, and has to end without an error. A top-level ``await`` is not used.
- A ``console`` block holds commands behind ``$ ``, each followed by all that it prints; ``...`` stands for any text.
  A command that fails is followed by ``$ echo $?``, so that the page says how it ends.
- A ``sh`` block holds commands that succeed, and says nothing of what they print.
- ``text``, ``json``, ``toml`` without a file's name and ``mermaid`` are to be read, not run.

The blocks of one page share a folder and run in the order of the page; ``cd`` in a ``console`` block counts for what
follows, and what ``pip`` installs is there for the page alone.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from site_kit import site_environ

READ_ONLY = ("text", "json", "toml", "mermaid")
#: These build wheels and run the tests, and so this test again: they are not run here.
EXEMPT = ("python3 dev.py", "pytest", "tox")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: What a busy machine has a host say beside.
SLOW = re.compile(r"^warning: still waiting for plugin .*\n", re.MULTILINE)
TITLE = re.compile(r"# ([\w./-]+\.\w+)\n")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line of the page at which it begins."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that the block's first line names."""
        title = TITLE.match(self.text)
        return title[1] if title is not None else None


class Command(NamedTuple):
    """A command of a ``console`` block, and what it prints."""

    text: str
    expected: str


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text("utf-8")
    return [Block(found[1], found[2], text.count("\n", 0, found.start()) + 1) for found in FENCE.finditer(text)]


def commands_of(text: str) -> Iterator[Command]:
    """The commands of a ``console`` block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        yield Command(command, expected)


def matches(expected: str, printed: str) -> bool:
    """Whether a command printed what the page says; ``...`` in the page stands for any text."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def is_body(text: str) -> bool:
    """Whether a text of Python is no module, but the body of an async function."""
    try:
        compile(text, "<page>", "exec")
    except SyntaxError as error:
        return "outside function" in str(error)
    return False


class Reader:
    """Does what a page says, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        home = folder.parent / "home"
        home.mkdir(exist_ok=True)
        # Imports from the folder are to see the file as the page has it now, whatever the clock says.
        self.environ = {**site_environ(home), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"}
        self.code = 0

    def follow(self, page: Path) -> None:
        """Write every file and run every program and command of a page."""
        for block in blocks_of(page):
            try:
                self.take(block)
            except AssertionError as error:
                raise AssertionError(f"{page.name}, the block at line {block.line}: {error}") from None

    def take(self, block: Block) -> None:
        """Do what one block says."""
        if block.file is not None:
            self._write(block.file, block.text)
        elif block.language == "python":
            self._succeed([sys.executable, "-c", block.text])
        elif block.language == "console":
            self._console(block.text)
        elif block.language == "sh":
            for line in filter(None, block.text.splitlines()):
                if not line.startswith(EXEMPT):
                    self._succeed(["sh", "-c", line])
        else:
            assert block.language in READ_ONLY, f"no convention covers the language {block.language!r}"

    def _write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        if file.suffix == ".py" and not is_body(text):
            self._succeed([sys.executable, "-c", f"import runpy; runpy.run_path({str(file)!r}, run_name='imported')"])

    def _console(self, text: str) -> None:
        for command in commands_of(text):
            if command.text.startswith(EXEMPT):
                continue
            if command.text.startswith("cd "):
                self.folder = (self.folder / command.text.removeprefix("cd ")).resolve(strict=True)
                continue
            asks_for_code = command.text == "echo $?"
            assert asks_for_code or not self.code, "a command that fails is followed by '$ echo $?'"
            printed = self._run(["sh", "-c", f"(exit {self.code}); {command.text}"])
            told = f"$ {command.text}\n--- the page says\n{command.expected}--- it printed\n{printed}"
            assert matches(command.expected, printed), told
        assert not self.code, f"the last command ends with {self.code}; follow it with '$ echo $?'"

    def _succeed(self, command: list[str]) -> None:
        printed = self._run(command)
        assert not self.code, f"{command[-1]}\n--- ends with {self.code} and printed\n{printed}"

    def _run(self, command: list[str]) -> str:
        ran = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        self.code = ran.returncode
        return SLOW.sub("", ran.stdout)
