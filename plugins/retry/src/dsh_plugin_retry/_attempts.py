"""The attempts of one call, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeAlias

import trio
from dsh_hookspecs import (
    AbortSignal,
    ToolDispatchExecution,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolFailure,
)

from dsh_plugin_retry._policy import Policy, code_of

Next: TypeAlias = Callable[[], Awaitable[ToolExecutionResult]]


async def run_attempts(
    policy: Policy, call: ToolDispatchExecution, next: Next, random: Random, log: logging.Logger
) -> ToolExecutionResult:
    """Run what lies behind until its result stands; give back the last one."""
    began = trio.current_time()
    attempt = 0
    while True:
        attempt += 1
        result = await next()
        if not policy.retries(result):
            return result
        wait = policy.wait(attempt, trio.current_time() - began, random.random())
        if wait is None:
            return result
        if await _aborted_within(wait, call.signal):
            return _aborted(result, attempt)
        code = code_of(result) or "no code"
        log.info("attempt %d of tool %r failed (%s); trying again after %.3g s", attempt, call.name, code, wait)


async def _aborted_within(seconds: float, signal: AbortSignal) -> bool:
    with trio.move_on_after(seconds):
        await signal.wait()
    return signal.aborted


def _aborted(result: ToolExecutionResult, attempt: int) -> ToolExecutionResult:
    """The result of a call that was aborted while it waited: a failure with a code of its own stays."""
    if not isinstance(result, ToolExecutionFailure) or code_of(result) is not None:
        return result
    message = f"the call was aborted while it waited to try again; attempt {attempt} failed: {result.error.message}"
    return ToolExecutionFailure(
        error=ToolFailure(message, ToolErrorInfo("AbortError", "ABORTED")),
        additional_contexts=result.additional_contexts,
    )
