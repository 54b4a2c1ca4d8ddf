"""A record as one line of JSON: plain ASCII, so that no line break hides in it.

Every text that comes from outside passes the redactor. If that fails, the text is withheld: a record says too little
rather than too much, and there is one in any case.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final, Protocol

from attrs import frozen
from dsh_hookspecs import JsonValue

from dsh_plugin_audit_jsonl._entry import Entry, Gap

_VERSION: Final = 1
_TEXT_CHARS: Final = 1000
_WITHHELD: Final = "[withheld]"


class Redactor(Protocol):
    """The service ``redact``."""

    def text(self, text: str) -> str: ...
    def value(self, value: JsonValue) -> JsonValue: ...


@frozen
class Lines:
    """Makes lines of records."""

    arguments: bool = False
    max_argument_bytes: int = 4096
    redactor: Redactor | None = None

    def line(self, item: Entry | Gap) -> bytes:
        """The line of a record, with its line break."""
        record = self._record(item) if isinstance(item, Entry) else _gap(item)
        return (_json(record) + "\n").encode()

    def _record(self, entry: Entry) -> dict[str, Any]:
        call = entry.call
        record = {
            "v": _VERSION,
            "time": _utc(entry.time),
            "call": self._text(call.call_id),
            "root": self._text(call.root_call_id),
            "agent": None if call.agent is None else self._text(label_of(call.agent)),
            "tool": self._text(call.name),
            "digest": _digest(entry),
            "outcome": entry.outcome,
            "code": entry.code,
            "plugin": entry.plugin,
            "seconds": None if entry.seconds is None else round(entry.seconds, 6),
            "content_bytes": entry.content_bytes,
        }
        return {**record, **self._arguments(call.arguments)} if self.arguments else record

    def _text(self, text: str) -> str:
        try:
            masked = text if self.redactor is None else self.redactor.text(text)
        except Exception:
            return _WITHHELD
        return masked[:_TEXT_CHARS] if isinstance(masked, str) else _WITHHELD

    def _arguments(self, arguments: JsonValue) -> dict[str, Any]:
        """The arguments, masked first and cut then: half a secret fits no pattern."""
        try:
            masked = arguments if self.redactor is None else self.redactor.value(arguments)
            text = _json(masked)
        except Exception:
            return {"arguments_head": _WITHHELD}
        if len(text) <= self.max_argument_bytes:
            return {"arguments": masked}
        return {"arguments_head": text[: self.max_argument_bytes], "arguments_bytes": len(text)}


def label_of(agent: object) -> str:
    """A short text for an agent's key: itself if it is one."""
    try:
        return agent if isinstance(agent, str) else repr(agent)
    except Exception:
        return type(agent).__name__


def _digest(entry: Entry) -> str | None:
    try:
        return entry.call.digest
    except Exception:  # Arguments nested too deeply for json have none.
        return None


def _gap(gap: Gap) -> dict[str, Any]:
    return {"v": _VERSION, "time": _utc(gap.time), "outcome": "denied", "records_without_room": gap.count}


def _utc(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
