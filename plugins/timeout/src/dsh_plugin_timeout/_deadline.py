"""One call under a deadline: its signal, and its result when it was too late."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from dsh_hookspecs import (
    AbortSignal,
    ToolDispatchExecution,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolFailure,
)

Next: TypeAlias = Callable[[], Awaitable[ToolExecutionResult]]


async def run_with_deadline(exec: ToolDispatchExecution, seconds: float, next: Next) -> ToolExecutionResult:
    """Run what lies behind; give back its result, or the timeout's if the deadline was what stopped it.

    The call's own signal stays in, and whichever of the two aborts first is the reason that counts. A deadline is only
    looked at when somebody asks, so the moment in which the caller aborts is the one to ask whether it was first. What
    lies behind is never left running: the result of a late body is replaced once it has come.
    """
    deadline = AbortSignal.timeout(seconds)
    limited = AbortSignal.any([deadline, exec.signal])
    undo = exec.signal.add_callback(lambda: limited.reason)
    exec.signal = limited
    try:
        result = await next()
    finally:
        undo()
    if limited.reason is None or limited.reason is not deadline.reason:
        return result
    took = seconds + _now() - deadline.deadline
    return _timed_out(_message(exec.name, seconds, took, result), limited.reason, result)


def _now() -> float:
    """The time on the clock that signals go by, which need not be the wall's."""
    return AbortSignal.timeout(0).deadline


def _timed_out(message: str, reason: BaseException, late: ToolExecutionResult) -> ToolExecutionFailure:
    return ToolExecutionFailure(
        error=ToolFailure(message, ToolErrorInfo(type(reason).__name__, "TOOL_TIMEOUT")),
        content=[{"type": "text", "text": f"Error: {message}"}],
        additional_contexts=late.additional_contexts,
    )


def _message(tool: str, seconds: float, took: float, late: ToolExecutionResult) -> str:
    return (
        f"Tool {tool!r} ran into its deadline of {seconds:g} s and was told to stop."
        f" Its body came to rest after {took:.3g} s{_outcome(late)}"
    )


def _outcome(late: ToolExecutionResult) -> str:
    """How the body ended, as far as its result tells."""
    if not late.is_error:
        return ", its work done: what it did stands, its value came too late."
    if late.error.info is None or late.error.info.code not in ("ABORTED", "ABORTED_BEFORE_DISPATCH"):
        return f", with an error of its own: {late.error.message}"
    return "; what it did until then may stand."
