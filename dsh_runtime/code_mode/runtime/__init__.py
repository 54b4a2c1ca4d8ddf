"""The subprocess runtime: each program in a fresh, confined interpreter.

Layering, lowest first: ``child`` (what runs outside the host, of which ``order`` and ``wire`` are known here);
``config``, ``errors``; ``frames``, ``endings``, ``output``, ``outbox``, ``shield``, ``users``; ``worker``,
``template``; ``workshop``; ``pool``, ``conversation``; ``service``.
"""

from __future__ import annotations

from dsh_runtime.code_mode.runtime.config import CodeRuntimeConfig
from dsh_runtime.code_mode.runtime.errors import CodeRuntimeError, SandboxError
from dsh_runtime.code_mode.runtime.service import SubprocessRuntime

__all__ = ["CodeRuntimeConfig", "CodeRuntimeError", "SandboxError", "SubprocessRuntime"]
