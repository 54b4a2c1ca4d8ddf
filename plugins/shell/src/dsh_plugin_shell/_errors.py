"""The errors of the shell tool, each with a stable code."""

from __future__ import annotations

import errno
import os
from typing import Literal, TypeAlias

from dsh_hookspecs import HarnessError

Code: TypeAlias = Literal[
    "SHELL_BAD_COMMAND",
    "SHELL_NOT_ENDED",
    "SHELL_NOT_FOUND",
    "SHELL_NOT_STARTED",
    "SHELL_NO_FOLDER",
    "SHELL_WARDEN_LOST",
]


class ShellError(HarnessError):
    """A command that could not be run, or not be brought to rest; ``code`` says which."""

    default_code = "SHELL_NOT_STARTED"

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message, code=code)


def folder_error(folder: str, number: int) -> ShellError:
    """The folder could not be entered."""
    problem = f"folder '{folder}' of the plugin 'shell' cannot be entered: {os.strerror(number)}"
    return ShellError("SHELL_NO_FOLDER", f"{problem}; make it, or correct 'folder' in the config")


def too_long() -> ShellError:
    """The system takes no command of this length."""
    return ShellError("SHELL_BAD_COMMAND", "the command is too long for the system; put it into a file and run that")


def start_error(program: str, number: int) -> ShellError:
    """The program could not be started."""
    if number == errno.ENOENT:
        return ShellError("SHELL_NOT_FOUND", f"program '{program}' was not found; PATH is that of the plugin's config")
    if number == errno.E2BIG:
        return too_long()
    return ShellError("SHELL_NOT_STARTED", f"program '{program}' could not be started: {os.strerror(number)}")
