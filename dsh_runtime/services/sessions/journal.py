"""The journal of the pipeline: from executions and results to committed rows."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field
from dsh_hookspecs import (
    ApprovalRequest,
    CodeDispatchLog,
    ExecutionToken,
    JsonValue,
    ToolExecution,
    ToolExecutionResult,
    ToolExecutionSuccess,
)

from dsh_runtime.services.sessions.bounds import weighs_more
from dsh_runtime.services.sessions.encode import LARGE, Encoded, encode, is_large, key_text, result_is_large
from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.events import (
    ApprovalAsked,
    ApprovalDecided,
    CodeDispatch,
    CodeDispatchStart,
    Event,
    PluginState,
    ToolCall,
    ToolResult,
)
from dsh_runtime.services.sessions.log import end_session
from dsh_runtime.services.sessions.schema import Row
from dsh_runtime.services.sessions.session import OpenCall, Session
from dsh_runtime.services.sessions.short import short_call, short_success
from dsh_runtime.services.sessions.store import Store
from dsh_runtime.tools.story import Story

if TYPE_CHECKING:
    import sqlite3

    from dsh_runtime.services.sessions.encode import Redactor


@define(eq=False)
class Scribe:
    """Masks and encodes events, within the limit, off the loop where it takes long."""

    redact: Redactor | None
    limit: int

    def now(self, event: Event, *, small: bool = False) -> Encoded:
        """Encode an event here."""
        return encode(event, self.redact, self.limit, small=small)

    async def encoded(self, event: Event) -> Encoded:
        """Encode an event."""
        return await self._elsewhere(event) if is_large(event) else self.now(event, small=True)

    async def call(self, exec: ToolExecution, plugin: str | None, parent: str | None) -> Encoded:
        """Encode a call that entered; ``parent`` is the id of the call around it."""
        if weighs_more(exec.arguments, LARGE):
            return await self._elsewhere(call_event(exec, plugin, parent))
        return self.small_call(exec, plugin, parent)

    async def result(self, result: ToolExecutionResult, story: Any, views: JsonValue, ms: float) -> Encoded:
        """Encode a result, after so many milliseconds."""
        if result_is_large(result, story, views):
            return await self._elsewhere(result_event(result, story, views, ms))
        return self.small_result(result, story, views, ms)

    def small_call(self, exec: ToolExecution, plugin: str | None, parent: str | None) -> Encoded:
        """Encode a call whose arguments are small."""
        return self._short(short_call, exec, plugin, parent) or self.now(call_event(exec, plugin, parent), small=True)

    def small_result(self, result: ToolExecutionResult, story: Any, views: JsonValue, ms: float) -> Encoded:
        """Encode a result that is small."""
        short = self._short(short_success, result, story, views, round(ms, 3))
        return short or self.now(result_event(result, story, views, ms), small=True)

    def _short(self, way: Callable[..., Encoded | None], *members: Any) -> Encoded | None:
        """Where the short way leads, if anywhere. What fails there, fails on the long one, too, which says so."""
        try:
            encoded = way(*members, self.redact)
        except Exception:
            return None
        return encoded if encoded is not None and len(encoded.text) * 4 <= self.limit else None

    async def _elsewhere(self, event: Event) -> Encoded:
        """Encode an event in a worker thread; no record is lost to a cancellation meanwhile."""
        done: list[Encoded] = []
        with trio.CancelScope(shield=True):
            done.append(await trio.to_thread.run_sync(self.now, event))
        return done[0]


@define(eq=False)
class Journal:
    """Writes what happens to calls. ``host`` is the session of the process, for calls whose agent has none."""

    store: Store
    scribe: Scribe
    clock: Callable[[], int]
    host: Session
    sessions: Mapping[Hashable, Session]
    _calls: dict[ExecutionToken, OpenCall] = field(init=False, factory=dict)

    def called(self, exec: ToolExecution, plugin: str | None = None) -> Coroutine[Any, Any, None] | None:
        """Commit that a call entered. What this raises refuses the call."""
        return self._call_committed(exec, plugin)

    async def _call_committed(self, exec: ToolExecution, plugin: str | None) -> None:
        if exec.dry_run:
            return
        session, parent = self._place(exec)
        encoded = await self.scribe.call(exec, plugin, parent)
        if self.store.crowded:
            await self.store.room()
        row = self._call_row(exec, session, encoded)
        try:
            await self.store.append(row)
        except BaseException:
            self._forget(exec.token)
            raise
        if encoded.withheld is not None:
            raise LogError(f"call {exec.call_id!r} of tool {exec.name!r}: its arguments are {encoded.withheld}")

    def finished(
        self,
        exec: ToolExecution,
        result: ToolExecutionResult,
        story: Sequence[JsonValue] | None,
        views: JsonValue = None,
    ) -> Coroutine[Any, Any, None] | None:
        """Commit the result of a call, and with it a call that was refused before :meth:`called`."""
        return self._result_committed(exec, result, story, views)

    async def _result_committed(
        self, exec: ToolExecution, result: ToolExecutionResult, story: Sequence[JsonValue] | None, views: JsonValue
    ) -> None:
        if exec.dry_run:
            return
        if exec.token not in self._calls:
            await self._late_call(exec)
        call = self._calls[exec.token]
        try:
            encoded = await self.scribe.result(result, story, views, (perf_counter() - call.began) * 1e3)
            if self.store.crowded:
                await self.store.room()
            session = call.session
            place = session.number, session.next_seq(), self.clock(), ToolResult.type, call.seq
            await self.store.append(event_row(*place, encoded))
        finally:
            self._forget(exec.token)

    def asked(self, request: ApprovalRequest) -> None:
        """Write, in its turn, that a person is asked about a call; committed with the call's result at the latest."""
        self._post(request.exec, ApprovalAsked(digest=request.digest, deadline=request.deadline, reason=request.reason))

    def decided(self, request: ApprovalRequest, outcome: str, channel: str | None) -> None:
        """Write, in its turn, what became of a question."""
        self._post(request.exec, ApprovalDecided(digest=request.digest, outcome=outcome, channel=channel))

    def code_dispatch_start(self, exec: ToolExecution, sub_call_id: str, name: str) -> None:
        """Write, in its turn, that a program calls a tool; committed with that call."""
        call = self._calls.get(exec.token)
        if call is not None and self.store.usable:
            event = CodeDispatchStart(sub_call_id=sub_call_id, name=name)
            self.store.hold(self._row(call.session, call.seq, event, self.scribe.now(event)))

    async def code_dispatch(self, dispatch: CodeDispatchLog) -> None:
        """Write, in its turn, that a call of a program has ended; committed with the next record that comes.

        That is the result of the outer call at the latest.
        """
        call = self._calls.get(dispatch.exec.token)
        if call is None:
            return
        sub_call_id, name, is_error = dispatch.sub_call_id, dispatch.name, dispatch.is_error
        event = CodeDispatch(sub_call_id=sub_call_id, name=name, is_error=is_error, content=dispatch.content)
        encoded = await self.scribe.encoded(event)
        if self.store.crowded:
            await self.store.room()
        if self.store.usable:
            self.store.hold(self._row(call.session, call.seq, event, encoded))

    def plugin_state(self, fiber: Any, previous: str) -> None:
        """Write, in its turn, that a plugin went from one state to another. A closed or broken log hears no more."""
        if not self.store.usable:
            return
        state, error = str(fiber.state), None
        if fiber.error is not None:
            error = f"{type(fiber.error).__name__}: {fiber.error}"
        event = PluginState(plugin=fiber.id, name=fiber.name, state=state, previous=previous, error=error)
        self.store.post(self._row(self.host, None, event, self.scribe.now(event)))

    def forget_all(self) -> None:
        """The log is closed: no call is under way any more."""
        for call in self._calls.values():
            call.session.calls = 0
        self._calls.clear()

    def ending(self, session: Session) -> Callable[[sqlite3.Connection], None]:
        """The step that ends a session."""
        number, now = session.number, self.clock()
        return lambda db: end_session(db, number, now)

    # From an event to a row.

    def _place(self, exec: ToolExecution) -> tuple[Session, str | None]:
        """The session of a call, and the id of the call that it is nested in."""
        parent = self._calls.get(exec.parent) if exec.parent is not None else None
        if parent is not None:
            return parent.session, parent.call_id
        return self.sessions.get(exec.agent, self.host), None

    def _enter(self, exec: ToolExecution, session: Session) -> int:
        """A call is under way from now on; its place in the session."""
        seq = session.next_seq()
        session.calls += 1
        self._calls[exec.token] = OpenCall(session, seq, exec.call_id, perf_counter())
        return seq

    def _call_row(self, exec: ToolExecution, session: Session, encoded: Encoded) -> Row:
        """The row of a call, which is under way from now on."""
        return call_row(session.number, self._enter(exec, session), self.clock(), exec, encoded)

    def _row(self, session: Session, call: int | None, event: Event, encoded: Encoded) -> Row:
        return event_row(session.number, session.next_seq(), self.clock(), event.type, call, encoded)

    async def _late_call(self, exec: ToolExecution) -> None:
        """Put a call that was refused at the entry in front of its result; both are committed in order."""
        session, parent = self._place(exec)
        encoded = await self.scribe.call(exec, None, parent)
        self.store.post(self._call_row(exec, session, encoded))

    def _post(self, exec: ToolExecution, event: Event) -> None:
        """Write an event of a call that is under way, without waiting for the commit."""
        call = self._calls.get(exec.token)
        if call is not None and self.store.usable:
            self.store.post(self._row(call.session, call.seq, event, self.scribe.now(event)))

    def _forget(self, token: ExecutionToken) -> None:
        """A call is over; if its session waited for that, it ends."""
        call = self._calls.pop(token, None)
        if call is None:
            return
        session = call.session
        session.calls -= 1
        if session.closing and not session.calls and self.store.usable:
            self.store.post_step(self.ending(session))


def call_event(exec: ToolExecution, plugin: str | None, parent: str | None) -> ToolCall:
    """What is recorded of a call that enters; ``parent`` is the id of the call around it."""
    return ToolCall(
        call_id=exec.call_id,
        name=exec.name,
        digest=exec.digest,
        root=exec.root_call_id if exec.root_call_id != exec.call_id else None,
        parent=parent,
        plugin=plugin,
        arguments=exec.arguments,
    )


def result_event(
    result: ToolExecutionResult, story: Sequence[JsonValue] | None, views: JsonValue, ms: float
) -> ToolResult:
    """What is recorded of a result, after so many milliseconds."""
    ms = round(ms, 3)
    content, meta = result.content, result.meta
    told: Any = story if story is None or type(story) is Story else list(story)
    if isinstance(result, ToolExecutionSuccess):
        return ToolResult(outcome="success", ms=ms, content=content, meta=meta, story=told, views=views)
    info = result.error.info
    error: dict[str, JsonValue] = {"message": result.error.message}
    if info is not None:
        error = {"name": info.name, "code": info.code, "plugin": info.plugin, **error}
    code = info.code if info is not None else None
    return ToolResult(
        outcome="failure", code=code, ms=ms, error=error, content=content, meta=meta, story=told, views=views
    )


def call_row(number: int, seq: int, now: int, exec: ToolExecution, encoded: Encoded) -> Row:
    """The row of a call."""
    call_id = key_text(str(encoded.payload.get("call_id", exec.call_id)))
    name = key_text(str(encoded.payload.get("name")))
    return (number, seq, now, ToolCall.type, seq, call_id, name, None, None, encoded.text)


def event_row(number: int, seq: int, now: int, type: str, call: int | None, encoded: Encoded) -> Row:
    """The row of any other event; ``call`` is the place of the call that it belongs to."""
    outcome, code = encoded.payload.get("outcome"), encoded.payload.get("code")
    return (number, seq, now, type, call, None, None, outcome, code, encoded.text)
