"""How a run can end, and what is told of it. Decisions alone: nothing here waits or reads."""

from __future__ import annotations

import os
import signal
from typing import Final, TypeAlias

from attrs import frozen

from dsh_runtime.code_mode.interface import CodeFailure, CodeOutcome, FailureKind
from dsh_runtime.code_mode.runtime.config import CodeRuntimeConfig
from dsh_runtime.code_mode.runtime.frames import Failed, Returned


@frozen
class Stopped:
    """The host has stopped the program."""

    kind: FailureKind
    message: str


@frozen
class Gone:
    """The program's process has closed the channel before its end, or has ended itself."""


Ending: TypeAlias = Returned | Failed | Stopped | Gone


@frozen
class Exit:
    """How a process ended: its wait status, and the seconds of processor time that it took."""

    status: int
    cpu: float


#: bubblewrap tells of a signal by an exit code, as a shell does.
_SIGNALLED: Final = 128


def outcome_of(ending: Ending, exit: Exit | None, logs: str, too_much: bool, config: CodeRuntimeConfig) -> CodeOutcome:
    """What is told of a run. ``exit`` is how its process ended by itself, if it did."""
    if too_much:
        ending = Stopped("output-limit", f"the program printed more than {config.output_bytes:,} bytes")
    match ending:
        case Returned(value):
            return CodeOutcome(logs, value, value is not None)
        case Failed(kind, message, traceback):
            return CodeOutcome(logs, failure=CodeFailure(kind, message, traceback))
        case Stopped(kind, message):
            return CodeOutcome(logs, failure=CodeFailure(kind, message))
    return CodeOutcome(logs, failure=_gone(exit, config))


def _gone(exit: Exit | None, config: CodeRuntimeConfig) -> CodeFailure:
    if exit is None:
        return CodeFailure("crashed", "the program closed its channel to the host")
    number = _signal_of(exit.status, sandboxed=config.sandbox == "bwrap")
    if number == signal.SIGXCPU or (number == signal.SIGKILL and exit.cpu >= config.cpu_time):
        return CodeFailure("timeout", f"the program took more than {config.cpu_time} s of processor time")
    if number is None:
        code = os.waitstatus_to_exitcode(exit.status)
        return CodeFailure("crashed", f"the program ended its process with exit code {code}")
    cause = "; the system may have been short of memory" if number == signal.SIGKILL else ""
    return CodeFailure("crashed", f"the program's process was ended by {_name_of(number)}{cause}")


def _signal_of(status: int, *, sandboxed: bool) -> int | None:
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    code = os.WEXITSTATUS(status)
    return code - _SIGNALLED if sandboxed and code > _SIGNALLED else None


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
