"""A plugin that tries to end the process stops the start with exit code 2, and is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Write = Callable[[str, str], Path]


@pytest.mark.parametrize("command", [("check",), ("call", "greet", "name=Ada"), ("tools",)])
@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("import sys; sys.exit('bye')", "SystemExit: bye"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseExceptionGroup('g', [KeyboardInterrupt()])", "BaseExceptionGroup: g (1 sub-exception)"),
    ],
)
def test_a_plugin_that_ends_the_process_in_apply_is_named(
    run: Run, write: Write, tmp_path: Path, command: tuple[str, ...], statement: str, error: str
) -> None:
    """With its line; nothing of it is taken for the user's own interrupt."""
    write("bad.py", f"def apply(ctx):\n    {statement}\n")
    write("dsh.toml", '[[plugin]]\nid = "bad"\nuse = "./bad.py"\n')
    ended = run(*command)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"error: dsh.toml:1: plugin 'bad' failed at {tmp_path}/bad.py:2: {error}; ")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("statement", ["raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_a_plugin_that_ends_the_process_when_imported_is_named(
    run: Run, write: Write, tmp_path: Path, statement: str
) -> None:
    """Likewise."""
    write("bad.py", f"x = 1\n{statement}\n")
    write("dsh.toml", '[[plugin]]\nid = "bad"\nuse = "./bad.py"\n')
    ended = run("check")
    assert ended.code == 2
    assert f"at {tmp_path}/bad.py:2 while it was imported" in ended.err


@pytest.mark.parametrize("statement", ["raise SystemExit(3)", "raise KeyboardInterrupt"])
def test_the_doctor_names_it_too(run: Run, write: Write, statement: str) -> None:
    """And says what to do instead."""
    write("bad.py", f"async def apply(ctx):\n    {statement}\n")
    write("dsh.toml", '[[plugin]]\nid = "bad"\nuse = "./bad.py"\n')
    ended = run("doctor")
    assert ended.code == 1
    assert "do: a plugin cannot end the host: raise an error that says what is wrong" in ended.out
