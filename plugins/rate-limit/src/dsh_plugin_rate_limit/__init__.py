"""Limits how often tools are called, with token buckets for each tool and agent.

Layering, lowest first: ``_bucket``, ``_shelf``; ``_config``; ``_limiter``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import trio
from dsh_hookspecs import Context, Deny, HarnessError, PreToolDecision, ToolExecution

from dsh_plugin_rate_limit._config import Config, RuleConfig
from dsh_plugin_rate_limit._limiter import Caller, Limiter, build_limiter

__all__ = ["Caller", "Config", "Limiter", "RuleConfig", "apply", "build_limiter", "inject", "name"]

name: Final = "rate-limit"
inject: Final = ("tools",)


def apply(ctx: Context, config: Config) -> None:
    """Hear every call before it runs; one that keeps all limits is left to whoever listens behind."""
    limiter = build_limiter(config)

    def limit(
        exec: ToolExecution, next: Callable[[], Awaitable[PreToolDecision]]
    ) -> PreToolDecision | Awaitable[PreToolDecision]:
        caller = Caller(exec.name, exec.name if _is_tool(ctx, exec) else None, exec.agent)
        refusal = limiter.refusal(caller, trio.current_time(), dry_run=exec.dry_run)
        return next() if refusal is None else Deny(refusal)

    ctx.on("tools/pre-execute", limit)


def _is_tool(ctx: Context, exec: ToolExecution) -> bool:
    try:
        return ctx.tools.get(exec.name, exec.agent) is not None
    except HarnessError:
        return False  # The agent's scope has ended just now: the call will be refused for that.
