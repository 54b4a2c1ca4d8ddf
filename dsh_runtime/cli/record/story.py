"""One call as the log tells it: what it was, what each stage said, what came of it, what was called inside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import asdict, define, field

if TYPE_CHECKING:
    from dsh_runtime.services.sessions.reading import CallRecord, Reader, StoredEvent


@define
class Told:
    """A call as a person or a program is told of it. ``result`` is ``None`` while there is none."""

    info: Mapping[str, Any]
    call: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]]
    approvals: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any] | None
    nested: list[Told] = field(factory=list)

    @property
    def decided_by(self) -> str | None:
        """The plugin that ended the call, where one did."""
        error = (self.result or {}).get("error")
        plugin = error.get("plugin") if isinstance(error, Mapping) else None
        return plugin if isinstance(plugin, str) else None

    def document(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            **self.info,
            "digest": self.call.get("digest"),
            "plugin": self.call.get("plugin"),
            "root": self.call.get("root"),
            "parent": self.call.get("parent"),
            "arguments": self.call.get("arguments"),
            "steps": list(self.steps),
            "approvals": list(self.approvals),
            "decided_by": self.decided_by,
            "error": (self.result or {}).get("error"),
            "content": (self.result or {}).get("content"),
            "meta": (self.result or {}).get("meta"),
            "nested": [told.document() for told in self.nested],
        }


def tell(reader: Reader, record: CallRecord) -> Told:
    """A call with those that were made inside it, as a tree."""
    top = _told(record)
    by_id = {record.info.call_id: top}
    for inner in reader.nested(record):
        told = by_id[inner.info.call_id] = _told(inner)
        parent = by_id.get(told.call.get("parent") or "")
        if parent is not None:
            parent.nested.append(told)
    return top


def _told(record: CallRecord) -> Told:
    first, last = record.events[0], record.events[-1]
    result = last.payload if last.type == "tool/result" else None
    return Told(
        info=asdict(record.info),
        call=first.payload,
        steps=_mappings((result or {}).get("story")),
        approvals=list(_approvals(record.events)),
        result=result,
    )


def _approvals(events: Iterable[StoredEvent]) -> Iterable[Mapping[str, Any]]:
    for event in events:
        if event.type.startswith("approval/"):
            payload = event.payload
            kept = {name: payload[name] for name in ("reason", "deadline", "outcome", "channel") if name in payload}
            yield {"event": event.type, "time": event.time, **kept}


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    """The steps of a story; one that was cut may hold something else at its end."""
    return [step for step in value if isinstance(step, Mapping)] if isinstance(value, list) else []
