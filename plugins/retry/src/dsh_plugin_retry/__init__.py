"""Tries the failed calls of idempotent tools again, with growing waits and within a budget.

Layering, lowest first: ``_config``, ``_policy``, ``_attempts``.
"""

from __future__ import annotations

from collections.abc import Awaitable
from random import Random
from typing import Final

from dsh_hookspecs import Context, ToolDispatchExecution, ToolExecutionResult

from dsh_plugin_retry._attempts import Next, run_attempts
from dsh_plugin_retry._config import NEVER_RETRIED, Config
from dsh_plugin_retry._policy import Policy, build_policy

__all__ = ["NEVER_RETRIED", "Config", "Policy", "apply", "build_policy", "name"]

name: Final = "retry"


def apply(ctx: Context, config: Config) -> None:
    """Wrap the calls of idempotent tools; every other call passes untouched."""
    policy, random = build_policy(config), Random(config.seed)

    def retry(exec: ToolDispatchExecution, next: Next) -> Awaitable[ToolExecutionResult]:
        return run_attempts(policy, exec, next, random, ctx.logger) if policy.covers(exec) else next()

    ctx.on("tools/execute", retry)
