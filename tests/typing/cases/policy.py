"""A policy plugin is typed by ``dsh_hookspecs`` alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dsh_hookspecs import (
    AbortSignal,
    Accept,
    Allow,
    Block,
    Context,
    Deny,
    PostToolDecision,
    PreToolDecision,
    ToolDispatchExecution,
    ToolExecution,
    ToolExecutionResult,
    hookimpl,
)


@hookimpl
async def tools_pre_execute(exec: ToolExecution, next: Callable[[], Awaitable[PreToolDecision]]) -> PreToolDecision:
    if exec.name == "rm":
        return Deny("not on this host")
    exec.name = "ls"  # E: Property "name" defined in "ToolExecution" is read-only
    decision = await next()
    if isinstance(decision, Allow):
        return decision
    return "no"  # E: Incompatible return value type


async def limit(exec: ToolDispatchExecution, next: Callable[[], Awaitable[ToolExecutionResult]]) -> ToolExecutionResult:
    exec.signal = AbortSignal.any([exec.signal, AbortSignal.timeout(5)])
    exec.signal = None  # E: Incompatible types in assignment
    return await next()


def review(exec: ToolExecution, result: ToolExecutionResult) -> PostToolDecision:
    return Block("failed") if result.is_error else Accept()


def guard(exec: ToolExecution) -> str | None:
    return None


def apply(ctx: Context) -> None:
    ctx.on("tools/execute", limit)
    ctx.on("tools/post-execute", review)
    ctx.tools.guard(guard)
    Deny()  # E: Missing positional argument "reason"
