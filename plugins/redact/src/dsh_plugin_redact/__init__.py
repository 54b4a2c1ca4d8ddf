"""Masks secrets before they reach a log, a trace, a terminal, telemetry or, if the config says so, the model.

Layering, lowest first: ``_mask``; ``_keys``, ``_forms``, ``_own``; ``_leaves``, ``_neighbours``; ``_pairs``;
``_redactor``; ``_policy``, ``_logs``, ``_config``.
"""

from __future__ import annotations

from typing import Final

from dsh_hookspecs import Context, PostToolDecision, ToolExecutionResult

from dsh_plugin_redact._config import Config, RuleConfig, build_redactor
from dsh_plugin_redact._logs import mask_handlers
from dsh_plugin_redact._policy import ModelPolicy, NextPolicy
from dsh_plugin_redact._redactor import Redactor

__all__ = ["Config", "Redactor", "RuleConfig", "apply", "build_redactor", "name", "provides"]

name: Final = "redact"
provides: Final = ("redact",)


def apply(ctx: Context, config: Config) -> None:
    """Provide the service ``redact``, and mask what the config says on the way."""
    redactor = build_redactor(config)
    if config.logs:
        ctx.effect(lambda: mask_handlers(redactor))
    if config.model:
        policy = ModelPolicy(redactor, value=config.value)

        async def hide(result: ToolExecutionResult, next: NextPolicy) -> PostToolDecision:
            return await policy.review(result, next)

        ctx.on("tools/post-execute", hide, prepend=True)
    ctx.provide("redact", redactor)
