"""What is noted of a call when it ends; cheap, since the loop waits for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from attrs import frozen
from dsh_hookspecs import ToolExecution, ToolExecutionFailure, ToolExecutionResult

_ABORTED: Final = frozenset({"ABORTED", "ABORTED_BEFORE_DISPATCH"})
_DENIED: Final = frozenset(
    {
        "APPROVAL_CANCELLED",
        "APPROVAL_EXPIRED",
        "APPROVAL_REJECTED",
        "APPROVAL_UNAVAILABLE",
        "DENIED",
        "GATE_CLOSED",
        "GUARDED",
        "LOG_UNAVAILABLE",
        "SCOPE_CLOSED",
    }
)


@frozen(eq=False)
class Entry:
    """One call that has ended. ``seconds`` is ``None`` for one that was refused before its time was taken."""

    time: datetime
    call: ToolExecution
    outcome: str
    code: str | None
    plugin: str | None
    seconds: float | None
    content_bytes: int


@frozen(eq=False)
class Gap:
    """Refused calls, none of which ran, for whose records there was no room."""

    time: datetime
    count: int


def entry_of(call: ToolExecution, result: ToolExecutionResult, seconds: float | None) -> Entry:
    """Note the end of a call."""
    info = result.error.info if isinstance(result, ToolExecutionFailure) else None
    code = info.code if info is not None else None
    plugin = info.plugin if info is not None else None
    outcome = _failure(code) if result.is_error else "success"
    return Entry(datetime.now(UTC), call, outcome, code, plugin, seconds, size_of(result.content))


def _failure(code: str | None) -> str:
    if code in _DENIED:
        return "denied"
    return "aborted" if code in _ABORTED else "failure"


def size_of(content: Any) -> int:
    """The bytes, in UTF-8, of all texts in some content, however deeply nested; the types of blocks are none."""
    size, stack = 0, [content]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            size += len(part) if part.isascii() else len(part.encode())
        elif isinstance(part, Mapping):
            stack.extend(value for key, value in part.items() if key != "type")
        elif isinstance(part, Sequence):
            stack.extend(part)
    return size
