"""Help, version, completion, and what is not imported for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dsh_runtime import __version__
from dsh_runtime.cli.app import COMMANDS

Run = Callable[..., Any]


def test_the_version_is_the_packages_own(run: Run) -> None:
    """One line."""
    assert run("--version") == (0, f"dsh-run {__version__}\n", "")


def test_without_a_command_the_help_goes_to_stderr(run: Run) -> None:
    """It was a mistake, after all."""
    ended = run()
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("Usage: dsh-run [OPTIONS] [COMMAND] [ARGS]...")


def test_the_help_lists_every_command_and_the_exit_codes(run: Run) -> None:
    """With a line about each."""
    ended = run("-h")
    assert ended.code == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in ended.out] == []
    assert "Exit codes:" in ended.out


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["config", "show"]])
def test_the_help_of_every_command_has_an_example(run: Run, command: list[str]) -> None:
    """Of its own."""
    ended = run(*command, "--help")
    assert ended.code == 0
    assert "Examples:" in ended.out
    assert f"dsh-run {' '.join(command)}".strip() in ended.out.partition("Examples:")[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(run: Run, shell: str) -> None:
    """It asks this program for the words."""
    ended = run("completion", shell)
    assert ended.code == 0
    assert "_DSH_RUN_COMPLETE" in ended.out and "dsh-run" in ended.out


def test_completion_completes_commands_and_options(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the script of a shell asks for them."""
    monkeypatch.setenv("_DSH_RUN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "dsh-run to")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        run()
