"""What the warden is told: one command, where and with what."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from dsh_plugin_shell._errors import ShellError, too_long

LENGTH_DIGITS: Final = 8
_MAX_BYTES: Final = 4 * 1024 * 1024


@frozen
class Order:
    """One command to run."""

    argv: Sequence[str]
    folder: str
    env: Mapping[str, str]
    grace: float

    def encode(self) -> bytes:
        """The length in hexadecimal digits, then JSON."""
        document = {"argv": self.argv, "folder": self.folder, "env": dict(self.env), "grace": self.grace}
        text = json.dumps(document).encode()
        if len(text) > _MAX_BYTES:
            raise too_long()
        return f"{len(text):0{LENGTH_DIGITS}x}".encode() + text


def argv_of(args: Mapping[str, Any], shell: Sequence[str]) -> list[str]:
    """The program and its arguments that a call stands for."""
    argv = [*shell, args["command"]] if shell else list(args["argv"])
    given = argv[len(shell) :]
    if not given or not given[0].strip():
        raise ShellError("SHELL_BAD_COMMAND", "the command is empty; give a program to run")
    if any("\0" in text for text in given):
        raise ShellError("SHELL_BAD_COMMAND", "the command holds a NUL character, which no program can be given")
    return argv


def shown(args: Mapping[str, Any]) -> str:
    """The command as a person would type it."""
    return args["command"] if "command" in args else shlex.join(args["argv"])
