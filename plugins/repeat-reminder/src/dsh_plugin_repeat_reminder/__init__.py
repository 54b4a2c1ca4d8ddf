"""Tells an agent that it makes the same call again and again.

Layering, lowest first: ``_config``, ``_message``, ``_streaks``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Awaitable, Callable
from typing import Final

from attrs import evolve
from dsh_hookspecs import Context, PostToolDecision, ToolExecution

from dsh_plugin_repeat_reminder._config import Config
from dsh_plugin_repeat_reminder._message import reminder
from dsh_plugin_repeat_reminder._streaks import Streaks

__all__ = ["Config", "apply", "name"]

name: Final = "repeat-reminder"


def apply(ctx: Context, config: Config) -> None:
    """Look at every result; one of a call that was made too often in a row gets an advice beside it."""
    streaks = Streaks()
    ignored = [re.compile(fnmatch.translate(glob)) for glob in config.ignore]

    def counts(exec: ToolExecution) -> bool:
        top_level = exec.parent is None and not exec.dry_run
        return top_level and not any(glob.match(exec.name) for glob in ignored)

    async def remind(exec: ToolExecution, next: Callable[[], Awaitable[PostToolDecision]]) -> PostToolDecision:
        decision = await next()
        if not counts(exec):
            return decision
        count = streaks.count(exec)
        if count not in config.counts:
            return decision
        message = reminder(name, exec.name, count, config.advice)
        return evolve(decision, additional_contexts=(*decision.additional_contexts, message))

    ctx.on("tools/post-execute", remind)
