"""Gives calls a deadline: the one that their tool declares, or one from the config.

Layering, lowest first: ``_budget``, ``_deadline``, ``_running``, ``_result``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from dsh_hookspecs import (
    AbortSignal,
    ApprovalOutcome,
    ApprovalRequest,
    Context,
    ToolDispatchExecution,
    ToolExecutionResult,
)

from dsh_plugin_timeout._budget import Budgets, Config, budgets_of
from dsh_plugin_timeout._result import timed_out
from dsh_plugin_timeout._running import Deadlines

__all__ = ["Budgets", "Config", "apply", "budgets_of", "name"]

name: Final = "timeout"

Next: TypeAlias = Callable[[], Awaitable[ToolExecutionResult]]
NextChannel: TypeAlias = Callable[[], Awaitable[ApprovalOutcome]]


def apply(ctx: Context, config: Config) -> None:
    """Wrap every call that has a deadline, and hold the deadlines around a call that a person is asked about."""
    import trio

    budgets, deadlines = budgets_of(config), Deadlines(trio.lowlevel.current_clock().current_time)

    def limit(exec: ToolDispatchExecution, next: Next) -> Awaitable[ToolExecutionResult]:
        if exec.parent is not None:
            deadlines.note(exec.token, exec.parent)
        definition = exec.definition
        seconds = None if definition is None else budgets.seconds(exec.name, definition.timeout)
        return next() if seconds is None else _run(deadlines, exec, seconds, next)

    async def hold(request: ApprovalRequest, next: NextChannel) -> ApprovalOutcome:
        with deadlines.held_around(request.exec):
            return await next()

    ctx.effect(lambda: deadlines.retire)
    ctx.on("tools/execute", limit)
    ctx.on("approval/request", hold, prepend=True)


async def _run(deadlines: Deadlines, exec: ToolDispatchExecution, seconds: float, next: Next) -> ToolExecutionResult:
    """Run what lies behind; give back its result, or the timeout's if the deadline was what stopped it.

    The call's own signal stays in. What lies behind is never left running: the result of a late body is replaced once
    it has come.
    """
    caller = exec.signal
    deadline = deadlines.start(exec.token, seconds, caller)
    exec.signal = AbortSignal.any((caller, deadline.signal))
    try:
        result = await next()
    finally:
        deadlines.finish(deadline)
    if not deadline.check():  # A body that keeps the loop busy keeps the timer from being heard: look again.
        return result
    deadline.hold()
    return timed_out(exec.name, seconds, deadline.used, result)
