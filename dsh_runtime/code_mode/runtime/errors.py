"""Why no program can be run here at all."""

from __future__ import annotations

from typing import ClassVar

from dsh_hookspecs import HarnessError


class CodeRuntimeError(HarnessError):
    """The runtime cannot run any program: that is no fault of the program's."""

    default_code: ClassVar[str | None] = "CODE_RUNTIME_UNAVAILABLE"


class SandboxError(CodeRuntimeError):
    """A sandbox is asked for and cannot be had, so nothing is run without it."""

    default_code: ClassVar[str | None] = "CODE_SANDBOX_UNAVAILABLE"
