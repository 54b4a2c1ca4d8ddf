"""What of a server's messages reaches the SDK, whatever they came over.

The SDK starts a task for whatever comes, answers every request, and writes a traceback for every notification of a
wrong shape: a server could fill memory and log with that. So notifications that nobody here acts on, or that are
malformed, go no further, and a server that asks without end and does not read what it is answered is given up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

#: So many requests of a server may be unanswered.
MOST_REQUESTS: Final = 100


class Sieve:
    """One for each connection."""

    def __init__(self) -> None:
        self._unanswered = 0

    @property
    def overrun(self) -> bool:
        """Whether the server asks more than it reads answers."""
        return self._unanswered > MOST_REQUESTS

    def passes(self, message: JSONRPCMessage) -> bool:
        """Whether a message goes on to the SDK."""
        if isinstance(message, JSONRPCRequest):
            self._unanswered += 1
            return not self.overrun
        return not isinstance(message, JSONRPCNotification) or is_heard(message)

    def written(self, message: JSONRPCMessage) -> None:
        """A message has gone out to the server."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._unanswered = max(0, self._unanswered - 1)


def is_heard(message: JSONRPCNotification) -> bool:
    """Whether anybody here acts on a notification, and it has the right shape."""
    check = _HEARD.get(message.method)
    params: Mapping[str, Any] = message.params or {}
    return check is not None and isinstance(params.get("_meta", {}), dict) and check(params)


def _is_progress(params: Mapping[str, Any]) -> bool:
    numbers = (params.get("progress"), params.get("total", 0) or 0)
    return (
        all(isinstance(each, int | float) and not isinstance(each, bool) and _is_finite(each) for each in numbers)
        and isinstance(params.get("progressToken"), int | str)
        and isinstance(params.get("message"), str | None)
    )


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _any(params: Mapping[str, Any]) -> bool:
    return True


_HEARD: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "notifications/progress": _is_progress,
    "notifications/tools/list_changed": _any,
    "notifications/cancelled": lambda params: isinstance(params.get("requestId"), int | str),
    "notifications/subscriptions/acknowledged": lambda params: isinstance(params.get("notifications"), dict),
}
