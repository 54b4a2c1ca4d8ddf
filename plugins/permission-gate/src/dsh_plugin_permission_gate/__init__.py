"""Allow, deny and ask rules on tool calls, by globs on the tool's name and its arguments.

Layering, lowest first: ``_glob``, ``_forms``, ``_select``, ``_globs``, ``_rules``, ``_texts``, ``_decide``,
``_config``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from dsh_hookspecs import Allow, Context, PreToolDecision, ToolExecution

from dsh_plugin_permission_gate._config import Config, RuleConfig, build_policy
from dsh_plugin_permission_gate._decide import decide
from dsh_plugin_permission_gate._rules import Policy

__all__ = ["Config", "Policy", "RuleConfig", "apply", "build_policy", "decide", "name"]

name: Final = "permission-gate"


def apply(ctx: Context, config: Config) -> None:
    """Hear every call before it runs; an allowed one is left to whoever listens behind the gate."""
    policy = build_policy(config)

    def gate(
        exec: ToolExecution, next: Callable[[], Awaitable[PreToolDecision]]
    ) -> PreToolDecision | Awaitable[PreToolDecision]:
        decision = decide(policy, exec.name, exec.arguments)
        return next() if isinstance(decision, Allow) else decision

    ctx.on("tools/pre-execute", gate)
