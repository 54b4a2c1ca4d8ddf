"""The settings of the session log."""

from __future__ import annotations

from typing import Any

from attrs import Attribute, field, frozen

from dsh_runtime.services.sessions.files import Sync


def _at_least(least: int) -> Any:
    def check(instance: object, attribute: Attribute[Any], value: Any) -> None:
        if value is not None and value < least:
            raise ValueError(f"{attribute.name} is {value}; expected at least {least}")

    return check


def _sync_mode(instance: object, attribute: Attribute[Any], value: Any) -> None:
    if value not in ("normal", "full", "off"):
        raise ValueError(f"sync is {value!r}; expected 'full', 'normal' or 'off' (safe against nothing)")


@frozen
class SessionsConfig:
    """Settings of the session log.

    ``sync = "normal"`` is safe against the death of the process, ``"full"`` also against that of the machine. With
    ``"off"`` nobody waits for a commit: a call is on its way to the log before policy runs, and its result before
    anybody hears of it, but what the process has not written when it dies is lost. Closed sessions that ended
    ``keep_days`` ago, and the oldest while the log is above ``max_bytes``, are deleted; by default all are kept.
    """

    path: str | None = None
    sync: Sync = field(default="normal", validator=_sync_mode)
    max_event_bytes: int = field(default=1_048_576, validator=_at_least(4_096))
    max_queue_bytes: int = field(default=67_108_864, validator=_at_least(4_096))
    keep_days: float | None = field(default=None, validator=_at_least(0))
    max_bytes: int | None = field(default=None, validator=_at_least(0))
