"""What the command line's tests share: a directory, and commands run in it, in this process."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from dsh_runtime.cli.main import main


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]
Write = Callable[[str, str], Path]

GREET = '[[plugin]]\nid = "greet"\nuse = "greet"\n'


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file in the directory of the test."""

    def write_file(name: str, text: str) -> Path:
        file = tmp_path / name
        file.write_text(text, "utf-8")
        return file

    return write_file


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run ``dsh-run`` in the directory of the test; no config of a user is in reach."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user-config"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def run_command(*args: str) -> Ended:
        capsys.readouterr()
        code = main(args)
        return Ended(code, *capsys.readouterr())

    return run_command


@pytest.fixture
def greet(write: Write) -> Path:
    """A config with the tutorial's plugin alone."""
    return write("dsh.toml", GREET)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], None]]:
    """Make stdin a pipe that holds some bytes."""
    opened: list[io.TextIOWrapper] = []

    def pipe(data: bytes) -> None:
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        stdin = io.TextIOWrapper(io.FileIO(reading), encoding="utf-8")
        opened.append(stdin)
        monkeypatch.setattr(sys, "stdin", stdin)

    yield pipe
    for stdin in opened:
        stdin.close()
