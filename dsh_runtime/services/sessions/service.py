"""The service ``sessions``: who is in which session, and the journal of every call.

A session belongs to an agent's scope key. Calls of an agent without one go to the session of the process, calls that
are nested in another go to that one's. Everything passes the redactor before it is written.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import trio
from attrs import Attribute, define, field, frozen
from dsh_hookspecs import (
    ApprovalRequest,
    CodeDispatchLog,
    ExecutionToken,
    JsonValue,
    ToolExecution,
    ToolExecutionResult,
)

from dsh_runtime.core.services import Service
from dsh_runtime.services.sessions.encode import Encoded, encode, is_large, key_text
from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.events import (
    ApprovalAsked,
    ApprovalDecided,
    CodeDispatch,
    CodeDispatchStart,
    Event,
    PluginState,
    SessionStarted,
    ToolCall,
    ToolResult,
)
from dsh_runtime.services.sessions.files import Sync, log_path
from dsh_runtime.services.sessions.log import OpenLog, begin_session, end_owner, end_session, open_log
from dsh_runtime.services.sessions.schema import Row
from dsh_runtime.services.sessions.store import Store

if TYPE_CHECKING:
    import sqlite3

    from dsh_runtime.services.sessions.encode import Redactor

HOST: Final = "host"
T = TypeVar("T")


def _at_least(least: int) -> Any:
    def check(instance: object, attribute: Attribute[Any], value: Any) -> None:
        if value is not None and value < least:
            raise ValueError(f"{attribute.name} is {value}; expected at least {least}")

    return check


def _sync_mode(instance: object, attribute: Attribute[Any], value: Any) -> None:
    if value not in ("normal", "full"):
        raise ValueError(f"sync is {value!r}; expected 'normal' (safe against the death of the process) or 'full'")


@frozen
class SessionsConfig:
    """Settings of the session log.

    ``sync = "normal"`` is safe against the death of the process, ``"full"`` also against that of the machine. Closed
    sessions older than ``keep_days``, and the oldest above ``max_bytes``, are deleted; by default all are kept.
    """

    path: str | None = None
    sync: Sync = field(default="normal", validator=_sync_mode)
    max_event_bytes: int = field(default=1_048_576, validator=_at_least(4_096))
    max_queue_bytes: int = field(default=67_108_864, validator=_at_least(4_096))
    keep_days: float | None = field(default=None, validator=_at_least(0))
    max_bytes: int | None = field(default=None, validator=_at_least(0))


class Session:
    """One agent's session in the log. Made by :meth:`Sessions.open_session`."""

    def __init__(
        self, sessions: Sessions, key: Hashable | None, number: int, id: str, label: str, front_door: str
    ) -> None:
        self.id = id
        self.key = key
        self.label = label
        self.front_door = front_door
        self._sessions = sessions
        self._number = number
        self._seq = 1  # session/started
        self._calls = 0
        self._closing = False

    async def close(self) -> None:
        """End the session; if calls are under way, when the last of them has its result."""
        await self._sessions._close_session(self)

    def __repr__(self) -> str:
        return f"<Session {self.id} of {self.label!r}>"


@define(eq=False)
class _OpenCall:
    """A call that has no result yet."""

    session: Session
    seq: int
    call_id: str
    began: float


def _epoch_ms() -> int:
    return time.time_ns() // 1_000_000


class Sessions(Service):
    """The session log. The methods that take an execution are the pipeline's journal."""

    name: ClassVar[str] = "sessions"
    inject = {"redact": False}  # noqa: RUF012  # the base class declares it
    Config = SessionsConfig

    def __init__(self, config: SessionsConfig | None = None, *, clock: Callable[[], int] = _epoch_ms) -> None:
        self.config = config if config is not None else SessionsConfig()
        self._clock = clock
        self._sessions: dict[Hashable, Session] = {}
        self._calls: dict[ExecutionToken, _OpenCall] = {}

    # Life.

    async def start(self) -> None:
        """Open the log, close what dead processes left open, and begin the session of this process."""
        path = log_path(self.config.path)
        self._redact: Redactor | None = self.ctx.get("redact")
        self._log: OpenLog = await trio.to_thread.run_sync(open_log, path, self.config.sync, self._clock())
        self._store = Store(self._log.db, path, max_queue_bytes=self.config.max_queue_bytes)
        self.ctx.effect(lambda: self._shut)
        self._host = await self._begin(None, f"process {os.getpid()}", HOST)
        self.ctx.on("plugin/state", self._plugin_state)

    async def _shut(self) -> None:
        """Commit what is queued, end the sessions of this process and let go of the file."""
        self._calls.clear()
        self._sessions.clear()
        with trio.CancelScope(shield=True):
            try:
                if self._store.broken is None:
                    number, now = self._log.owner, self._clock()
                    await self._store.run(lambda db: end_owner(db, number, now))
            finally:
                await self._store.close()
                await trio.to_thread.run_sync(self._log.lock.release)

    @property
    def path(self) -> Path:
        """The file of the log."""
        return self._store.path

    # Sessions.

    async def open_session(self, agent_key: Hashable, *, label: str, front_door: str) -> Session:
        """Begin the session of an agent: its calls go there from now on."""
        if agent_key in self._sessions:
            raise LogError(
                f"agent {agent_key!r} has the open session {self._sessions[agent_key].id}; close it first",
                code="SESSION_OPEN",
            )
        session = await self._begin(agent_key, label, front_door)
        self._sessions[agent_key] = session
        return session

    def session_of(self, agent_key: Hashable | None) -> Session:
        """The session that calls of an agent go to."""
        return self._sessions.get(agent_key, self._host)

    async def _begin(self, key: Hashable | None, label: str, front_door: str) -> Session:
        agent = None if key is None else str(key)
        event = SessionStarted(label=label, front_door=front_door, pid=os.getpid(), agent=agent)
        encoded = await self._encode(event)
        now = self._clock()
        name = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(now / 1000)) + secrets.token_hex(4)
        label = str(encoded.payload.get("label"))
        owner = self._log.owner
        number = await self._store.run(
            lambda db: begin_session(db, owner, name, label, front_door, now, encoded.text)
        )
        return Session(self, key, number, name, label, front_door)

    async def _close_session(self, session: Session) -> None:
        if session._closing:
            return
        session._closing = True
        if self._sessions.get(session.key) is session:
            del self._sessions[session.key]
        if not session._calls:
            await self._store.run(self._ending(session))

    def _ending(self, session: Session) -> Callable[[sqlite3.Connection], None]:
        number, now = session._number, self._clock()
        return lambda db: end_session(db, number, now)

    # The journal.

    async def called(self, exec: ToolExecution, *, plugin: str | None = None) -> None:
        """Commit that a call entered. What this raises refuses the call."""
        if exec.dry_run:
            return
        event, session = self._call_event(exec, plugin)
        encoded = await self._encode(event)
        if self._store.crowded:
            await self._store.room()
        row = self._call_row(exec, session, encoded)
        try:
            await self._store.append(row)
        except BaseException:
            self._forget(exec.token)
            raise
        if encoded.withheld is not None:
            raise LogError(f"call {exec.call_id!r} of tool {exec.name!r}: its arguments are {encoded.withheld}")

    async def finished(
        self, exec: ToolExecution, result: ToolExecutionResult, story: Sequence[JsonValue] | None
    ) -> None:
        """Commit the result of a call, and with it a call that was refused before :meth:`called`."""
        if exec.dry_run:
            return
        if exec.token not in self._calls:
            await self._late_call(exec)
        call = self._calls[exec.token]
        event = _result_event(result, story, round((perf_counter() - call.began) * 1000, 3))
        encoded = await self._encode(event)
        if self._store.crowded:
            await self._store.room()
        try:
            await self._store.append(self._row(call, event, encoded))
        finally:
            self._forget(exec.token)

    async def asked(self, request: ApprovalRequest, *, channel: str | None = None) -> None:
        """Commit that a person is asked about a call."""
        deadline, reason = request.deadline, request.reason
        event = ApprovalAsked(digest=request.digest, channel=channel, deadline=deadline, reason=reason)
        await self._note(request.exec, event)

    async def decided(
        self, request: ApprovalRequest, outcome: str, *, channel: str | None = None, detail: JsonValue = None
    ) -> None:
        """Commit what became of a question."""
        event = ApprovalDecided(digest=request.digest, outcome=outcome, channel=channel, detail=detail)
        await self._note(request.exec, event)

    async def code_dispatch_start(self, exec: ToolExecution, sub_call_id: str, name: str) -> None:
        """Commit that the program of ``exec`` calls a tool."""
        await self._note(exec, CodeDispatchStart(sub_call_id=sub_call_id, name=name))

    async def code_dispatch(self, dispatch: CodeDispatchLog) -> None:
        """Commit that a call of a program has ended, with what the log is to keep of it."""
        event = CodeDispatch(
            sub_call_id=dispatch.sub_call_id, name=dispatch.name, is_error=dispatch.is_error, content=dispatch.content
        )
        await self._note(dispatch.exec, event)

    def _plugin_state(self, fiber: Any, previous: str) -> None:
        error = None if fiber.error is None else f"{type(fiber.error).__name__}: {fiber.error}"
        event = PluginState(plugin=fiber.id, name=fiber.name, state=str(fiber.state), previous=previous, error=error)
        encoded = encode(event, self._redact, self.config.max_event_bytes)
        host = self._host
        nothing = (None, None, None, None, None)
        self._store.post((host._number, self._next(host), self._clock(), event.type, *nothing, encoded.text))

    # From an event to a row.

    async def _encode(self, event: Event) -> Encoded:
        """Encode an event, in a worker thread if that takes long. No record is lost to a cancellation here."""
        limit = self.config.max_event_bytes
        if not is_large(event):
            return encode(event, self._redact, limit, small=True)
        return await _shielded(encode, event, self._redact, limit)

    def _call_event(self, exec: ToolExecution, plugin: str | None) -> tuple[ToolCall, Session]:
        parent = self._calls.get(exec.parent) if exec.parent is not None else None
        event = ToolCall(
            call_id=exec.call_id,
            name=exec.name,
            digest=exec.digest,
            root=exec.root_call_id if exec.root_call_id != exec.call_id else None,
            parent=parent.call_id if parent is not None else None,
            plugin=plugin,
            arguments=exec.arguments,
        )
        return event, parent.session if parent is not None else self.session_of(exec.agent)

    def _call_row(self, exec: ToolExecution, session: Session, encoded: Encoded) -> Row:
        seq = self._next(session)
        session._calls += 1
        self._calls[exec.token] = _OpenCall(session, seq, exec.call_id, perf_counter())
        call_id, name = key_text(exec.call_id), key_text(str(encoded.payload.get("name")))
        return (session._number, seq, self._clock(), ToolCall.type, seq, call_id, name, None, None, encoded.text)

    async def _late_call(self, exec: ToolExecution) -> None:
        """Put a call that was refused at the entry in front of its result; both are committed in order."""
        event, session = self._call_event(exec, None)
        encoded = await self._encode(event)
        self._store.post(self._call_row(exec, session, encoded))

    async def _note(self, exec: ToolExecution, event: Event) -> None:
        """Commit an event of a call that is under way."""
        call = self._calls.get(exec.token)
        if call is None or exec.dry_run:
            return
        encoded = await self._encode(event)
        if self._store.crowded:
            await self._store.room()
        await self._store.append(self._row(call, event, encoded))

    def _row(self, call: _OpenCall, event: Event, encoded: Encoded) -> Row:
        session = call.session
        outcome, code = getattr(event, "outcome", None), getattr(event, "code", None)
        seq = self._next(session)
        return (session._number, seq, self._clock(), event.type, call.seq, None, None, outcome, code, encoded.text)

    def _next(self, session: Session) -> int:
        session._seq += 1
        return session._seq

    def _forget(self, token: ExecutionToken) -> None:
        """A call is over; if its session waited for that, it ends."""
        call = self._calls.pop(token, None)
        if call is None:
            return
        session = call.session
        session._calls -= 1
        if session._closing and not session._calls and self._store.broken is None:
            self._store.post_step(self._ending(session))


async def _shielded(fn: Callable[..., T], *args: Any) -> T:
    """Run ``fn`` in a worker thread, whatever is cancelled meanwhile."""
    outcome: T
    with trio.CancelScope(shield=True):
        outcome = await trio.to_thread.run_sync(fn, *args)
    return outcome


def _result_event(result: ToolExecutionResult, story: Sequence[JsonValue] | None, ms: float) -> ToolResult:
    if not result.is_error:
        return ToolResult(outcome="success", ms=ms, content=result.content, meta=result.meta, story=story)
    info = result.error.info
    error: dict[str, JsonValue] = {"message": result.error.message}
    if info is not None:
        error = {"name": info.name, "code": info.code, "plugin": info.plugin, **error}
    code = info.code if info is not None else None
    return ToolResult(
        outcome="failure", code=code, ms=ms, error=error, content=result.content, meta=result.meta, story=story
    )
