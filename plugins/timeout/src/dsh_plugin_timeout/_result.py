"""The result of a call that was too late."""

from __future__ import annotations

from typing import Final

from dsh_hookspecs import (
    DeadlineError,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolExecutionSuccess,
    ToolFailure,
)

#: The codes of a body that stopped, or never began, because of its signal.
_STOPPED: Final = ("ABORTED", "ABORTED_BEFORE_DISPATCH")


def timed_out(tool: str, seconds: float, used: float, late: ToolExecutionResult) -> ToolExecutionFailure:
    """The failure that takes the place of a late result; contexts that the body deferred are kept."""
    message = (
        f"Tool {tool!r} ran into its deadline of {seconds:g} s and was told to stop."
        f" Its body came to rest after {used:.3g} s{_outcome(late)}"
    )
    return ToolExecutionFailure(
        error=ToolFailure(message, ToolErrorInfo(DeadlineError.__name__, "TOOL_TIMEOUT")),
        content=[{"type": "text", "text": f"Error: {message}"}],
        additional_contexts=late.additional_contexts,
    )


def _outcome(late: ToolExecutionResult) -> str:
    """How the body ended, as far as its result tells."""
    if isinstance(late, ToolExecutionSuccess):
        return ", its work done: what it did stands, its value came too late."
    if late.error.info is None or late.error.info.code not in _STOPPED:
        return f", with an error of its own: {late.error.message}"
    return "; what it did until then may stand."
