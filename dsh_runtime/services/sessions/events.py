"""What the log records: one frozen type per kind of event.

An event's members are its payload. What can be large stands last, so that whatever has to be cut, the members that
identify the event stay whole. ``cut`` is the true size in bytes of a payload that was too large to be kept whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final, TypeAlias

from attrs import fields_dict, frozen
from dsh_hookspecs import Content, JsonValue

from dsh_runtime.tools.story import Story

TOOL_CALL: Final = "tool/call"
TOOL_RESULT: Final = "tool/result"
INTERRUPTED: Final = "INTERRUPTED"


# One is made for each record: frozen attrs classes fill a dict twice as fast as slots.
@frozen(slots=False, kw_only=True)
class Event:
    """Base of the events."""

    type: ClassVar[str]
    #: The members that may hold what a user, a model or a tool wrote at length.
    large: ClassVar[tuple[str, ...]] = ()

    cut: int | None = None

    def payload(self) -> dict[str, Any]:
        """The members that say something, in order."""
        return {name: value for name, value in self.__dict__.items() if value is not None}


@frozen(slots=False, kw_only=True)
class SessionStarted(Event):
    """A session began: whose it is, through which front door, in which process."""

    type: ClassVar[str] = "session/started"
    label: str
    front_door: str
    pid: int | None = None
    agent: str | None = None
    note: JsonValue = None


@frozen(slots=False, kw_only=True)
class ToolCall(Event):
    """A call entered; committed before any policy runs. ``root`` and ``parent`` are call ids, of a nested call only."""

    type: ClassVar[str] = TOOL_CALL
    large: ClassVar[tuple[str, ...]] = ("arguments",)
    call_id: str
    name: str
    digest: str
    root: str | None = None
    parent: str | None = None
    plugin: str | None = None
    arguments: JsonValue = None


@frozen(slots=False, kw_only=True)
class ApprovalAsked(Event):
    """A person is asked about a call."""

    type: ClassVar[str] = "approval/asked"
    large: ClassVar[tuple[str, ...]] = ("reason",)
    digest: str
    deadline: float | None = None
    reason: str | None = None


@frozen(slots=False, kw_only=True)
class ApprovalDecided(Event):
    """What became of a question."""

    type: ClassVar[str] = "approval/decided"
    digest: str
    outcome: str
    channel: str | None = None


@frozen(slots=False, kw_only=True)
class ToolResult(Event):
    """What came of a call: content, error and meta, never the canonical value; the story of its stages; its views."""

    type: ClassVar[str] = TOOL_RESULT
    large: ClassVar[tuple[str, ...]] = ("error", "content", "meta", "story", "views")
    outcome: str
    code: str | None = None
    ms: float | None = None
    error: Mapping[str, JsonValue] | None = None
    content: Content | None = None
    meta: JsonValue = None
    story: JsonValue | Story = None
    views: JsonValue = None


@frozen(slots=False, kw_only=True)
class CodeDispatchStart(Event):
    """A program calls a tool."""

    type: ClassVar[str] = "tool/code-dispatch-start"
    sub_call_id: str
    name: str


@frozen(slots=False, kw_only=True)
class CodeDispatch(Event):
    """A call that a program made has ended; ``content`` is what the log is to keep of it."""

    type: ClassVar[str] = "tool/code-dispatch"
    large: ClassVar[tuple[str, ...]] = ("content",)
    sub_call_id: str
    name: str
    is_error: bool
    content: Content | None = None


@frozen(slots=False, kw_only=True)
class PluginState(Event):
    """A plugin went from one state to another."""

    type: ClassVar[str] = "plugin/state"
    large: ClassVar[tuple[str, ...]] = ("error",)
    plugin: str
    name: str
    state: str
    previous: str
    error: str | None = None


AnyEvent: TypeAlias = (
    SessionStarted
    | ToolCall
    | ApprovalAsked
    | ApprovalDecided
    | ToolResult
    | CodeDispatchStart
    | CodeDispatch
    | PluginState
)

EVENTS: Final[Mapping[str, type[Event]]] = {
    kind.type: kind
    for kind in (
        SessionStarted,
        ToolCall,
        ApprovalAsked,
        ApprovalDecided,
        ToolResult,
        CodeDispatchStart,
        CodeDispatch,
        PluginState,
    )
}


def event_of(kind: str, payload: Mapping[str, Any]) -> Event:
    """The event that a payload was made from; members that this version does not know are left out."""
    cls = EVENTS[kind]
    known = _members(kind)
    if known.issuperset(payload):
        return cls(**payload)
    return cls(**{name: value for name, value in payload.items() if name in known})


@cache
def _members(kind: str) -> frozenset[str]:
    return frozenset(fields_dict(EVENTS[kind]))
