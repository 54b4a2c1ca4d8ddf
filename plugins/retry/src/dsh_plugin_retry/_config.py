"""The plugin's part of the config file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from attrs import Attribute, field, frozen
from attrs.validators import ge, gt, le, lt

#: Failures that stay what they are: the caller stopped, policy said no, or the same call can only end the same way.
NEVER_RETRIED: Final = frozenset(
    {
        "ABORTED",
        "ABORTED_BEFORE_DISPATCH",
        "APPROVAL_CANCELLED",
        "APPROVAL_EXPIRED",
        "APPROVAL_REJECTED",
        "APPROVAL_UNAVAILABLE",
        "BLOCKED",
        "DENIED",
        "GATE_CLOSED",
        "GUARDED",
        "INVALID_ARGS",
        "INVALID_TOOL_OUTPUT",
        "LISTENER_FAILED",
        "LOG_UNAVAILABLE",
        "SCOPE_CLOSED",
        "UNKNOWN_TOOL",
        "UNSUPPORTED_SCHEMA",
    }
)


def _may_be_retried(_config: object, _field: Attribute[Any], codes: Sequence[str]) -> None:
    never = sorted(NEVER_RETRIED.intersection(codes))
    if never:
        raise ValueError(f"failures with the code {', '.join(never)} are never retried; remove it")


def _some_glob(_config: object, _field: Attribute[Any], globs: Sequence[str]) -> None:
    if not globs:
        raise ValueError("there is no glob here, so nothing would be retried; write ['*'] for all idempotent tools")


@frozen
class Config:
    """Which failures are retried, how often, and after which waits. Times are in seconds.

    ``attempts`` counts the first one too. No attempt begins once ``max_time`` has passed since the first began. The
    waits grow from ``delay`` by ``factor`` up to ``max_delay``; ``jitter`` is the part of each that is left to chance.
    """

    attempts: int = field(default=3, validator=[ge(1), le(100)])
    max_time: float = field(default=60.0, validator=gt(0))
    delay: float = field(default=0.5, validator=[ge(0), lt(math.inf)])
    factor: float = field(default=2.0, validator=[ge(1), le(100)])
    max_delay: float = field(default=30.0, validator=[ge(0), lt(math.inf)])
    jitter: float = field(default=0.5, validator=[ge(0), le(1)])
    seed: int | None = None
    codes: tuple[str, ...] = field(default=("TOOL_TIMEOUT",), validator=_may_be_retried)
    without_code: bool = True
    tools: tuple[str, ...] = field(default=("*",), validator=_some_glob)
