"""Gives calls a deadline: the one that their tool declares, or one from the config.

Layering, lowest first: ``_budget``, ``_deadline``.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from dsh_hookspecs import Context, ToolDispatchExecution, ToolExecutionResult

from dsh_plugin_timeout._budget import Budgets, Config, budgets_of
from dsh_plugin_timeout._deadline import Next, run_with_deadline

__all__ = ["Budgets", "Config", "apply", "budgets_of", "name"]

name: Final = "timeout"


def apply(ctx: Context, config: Config) -> None:
    """Wrap every call that has a deadline; an unknown tool has none."""
    budgets = budgets_of(config)

    def limit(exec: ToolDispatchExecution, next: Next) -> Awaitable[ToolExecutionResult]:
        if exec.definition is None:
            return next()
        seconds = budgets.seconds(exec.name, exec.definition.timeout)
        return next() if seconds is None else run_with_deadline(exec, seconds, next)

    ctx.on("tools/execute", limit)
