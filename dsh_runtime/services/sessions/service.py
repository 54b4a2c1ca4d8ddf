"""The service ``sessions``: opens the log, knows who is in which session, and lends the pipeline its journal.

A session belongs to an agent's scope key. Calls of an agent without one go to the session of the process, calls that
are nested in another go to that one's. Everything passes the redactor before it is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import trio
from dsh_hookspecs import CodeDispatchLog, JsonValue, ToolExecution, ToolExecutionResult

from dsh_runtime.core.services import Service
from dsh_runtime.services.sessions.config import SessionsConfig
from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.events import SessionStarted
from dsh_runtime.services.sessions.files import log_path
from dsh_runtime.services.sessions.journal import Journal, Scribe
from dsh_runtime.services.sessions.lazy import LazyJournal
from dsh_runtime.services.sessions.log import OpenLog, begin_session, end_owner, open_log, resume_session
from dsh_runtime.services.sessions.session import Session, new_session_id
from dsh_runtime.services.sessions.store import Store

if TYPE_CHECKING:
    import sqlite3

    from dsh_runtime.services.sessions.encode import Redactor
    from dsh_runtime.services.sessions.follow import Follower
    from dsh_runtime.services.sessions.prune import Pruned
    from dsh_runtime.services.sessions.reading import Reader

T = TypeVar("T")
_DAY_MS: Final = 86_400_000
_PRUNE_INTERVAL: Final = 3_600.0


def _epoch_ms() -> int:
    return time.time_ns() // 1_000_000


class Sessions(Service):
    """The session log. Restarted, the same instance goes on with the sessions that are open."""

    name: ClassVar[str] = "sessions"
    inject = {"redact": False, "tools": False}  # noqa: RUF012  # the base class declares it
    Config = SessionsConfig

    def __init__(self, config: SessionsConfig | None = None, *, clock: Callable[[], int] = _epoch_ms) -> None:
        self.config = config if config is not None else SessionsConfig()
        self._clock = clock
        self._sessions: dict[Hashable, Session] = {}

    # Life.

    async def start(self) -> None:
        """Open the log, close what dead processes left open, and begin the session of this process."""
        path = log_path(self.config.path)
        self._scribe = Scribe(self.redactor(), self.config.max_event_bytes)
        self._log: OpenLog = await trio.to_thread.run_sync(open_log, path, self.config.sync, self._clock())
        lazy = self.config.sync == "off"
        self._store = Store(self._log.db, path, max_queue_bytes=self.config.max_queue_bytes, gather=lazy)
        self.ctx.effect(lambda: self._shut)
        host = await self._begin(None, f"process {os.getpid()}", "host")
        kind = LazyJournal if lazy else Journal
        self._journal = kind(self._store, self._scribe, self._clock, host, self._sessions)
        await self._resume()
        self._listen(self._journal)
        if self.config.keep_days is not None or self.config.max_bytes is not None:
            self.ctx.start_soon(self._prune_regularly)

    def _listen(self, journal: Journal) -> None:
        """Have every call and everything else that the log keeps told to the journal."""
        self.ctx.on("plugin/state", journal.plugin_state)
        self.ctx.on("approval/asked", journal.asked)
        self.ctx.on("approval/decided", journal.decided)
        if self.ctx.tools is not None:
            self.ctx.tools.keep_record(self.recorder(journal))

    def recorder(self, journal: Journal) -> Any:
        """What the pipeline tells of its calls: the journal, or what tells it more."""
        return journal

    def redactor(self) -> Redactor | None:
        """What masks every record."""
        redact: Redactor | None = self.ctx.redact
        return redact

    async def _resume(self) -> None:
        """Go on with the sessions that agents had when this service was restarted."""
        for key, session in list(self._sessions.items()):
            if not await self._store.run(self._resuming(session)):
                del self._sessions[key]

    def _resuming(self, session: Session) -> Callable[[sqlite3.Connection], bool]:
        owner = self._log.owner
        return lambda db: resume_session(db, session.number, owner)

    async def _shut(self) -> None:
        """Commit what is queued, end the sessions of this process and let go of the file."""
        owner, now = self._log.owner, self._clock()
        with trio.CancelScope(shield=True):
            try:
                if self._store.usable:
                    await self._store.run(lambda db: end_owner(db, owner, now))
            finally:
                await self._store.close()
                await trio.to_thread.run_sync(self._log.lock.release)

    def stop(self) -> None:
        """From now on no call is under way."""
        self._journal.forget_all()

    @property
    def path(self) -> Path:
        """The file of the log."""
        return self._store.path

    @property
    def broken(self) -> str | None:
        """Why the log takes no more records, ``None`` while it does."""
        return self._store.broken

    # Sessions.

    async def open_session(self, agent_key: Hashable, *, label: str, front_door: str) -> Session:
        """Begin the session of an agent: its calls go there from now on."""
        if agent_key in self._sessions:
            other = self._sessions[agent_key].id
            raise LogError(f"agent {agent_key!r} has the open session {other}; close it first", code="SESSION_OPEN")
        session = await self._begin(agent_key, label, front_door)
        self._sessions[agent_key] = session
        return session

    def session_of(self, agent_key: Hashable | None) -> Session:
        """The session that calls of an agent go to."""
        return self._sessions.get(agent_key, self._journal.host)

    async def _begin(self, key: Hashable | None, label: str, front_door: str) -> Session:
        agent = None if key is None else str(key)
        event = SessionStarted(label=label, front_door=front_door, pid=os.getpid(), agent=agent)
        encoded = await self._scribe.encoded(event)
        owner, now = self._log.owner, self._clock()
        session, shown = new_session_id(now), str(encoded.payload["label"])
        number = await self._store.run(
            lambda db: begin_session(db, owner, session, shown, front_door, now, encoded.text)
        )
        return Session(session, number, key, shown, front_door, self._end)

    async def _end(self, session: Session) -> None:
        if session.closing:
            return
        session.closing = True
        if self._sessions.get(session.key) is session:
            del self._sessions[session.key]
        if not session.calls and not self._store.closed:
            await self._store.run(self._journal.ending(session))

    # The pipeline's journal.

    async def called(self, exec: ToolExecution, *, plugin: str | None = None) -> None:
        """Commit that a call entered, before any policy runs. What this raises refuses the call."""
        waiting = self._journal.called(exec, plugin)
        if waiting is not None:
            await waiting

    async def finished(
        self,
        exec: ToolExecution,
        result: ToolExecutionResult,
        story: Sequence[JsonValue] | None,
        *,
        views: JsonValue = None,
    ) -> None:
        """Commit the result of a call, before anybody gets it; also of a call that was refused before ``called``.

        ``views`` are the tool's own views of both, ``pending`` and ``completed``, as JSON: what a replay shows.
        """
        waiting = self._journal.finished(exec, result, story, views)
        if waiting is not None:
            await waiting

    def code_dispatch_start(self, exec: ToolExecution, sub_call_id: str, name: str) -> None:
        """Write, in its turn, that the program of ``exec`` calls a tool."""
        self._journal.code_dispatch_start(exec, sub_call_id, name)

    async def code_dispatch(self, dispatch: CodeDispatchLog) -> None:
        """Write, in its turn, that a call of a program has ended, with what the log is to keep of it."""
        await self._journal.code_dispatch(dispatch)

    # Looking back.

    async def read(self, question: Callable[[Reader], T]) -> T:
        """Ask a :class:`Reader` in a worker thread; no iterator may come back, for the reader is closed then."""
        from dsh_runtime.services.sessions.reading import Reader

        def answer() -> T:
            with Reader(self.path) as reader:
                return question(reader)

        return await trio.to_thread.run_sync(answer)

    def follow(self, *, session: str | None = None, after: int | None = None) -> Follower:
        """The events as they are committed, by this process and by others."""
        from dsh_runtime.services.sessions.follow import Follower

        return Follower(self.path, session=session, after=after, store=self._store)

    async def prune(self, *, before: int | None = None, max_bytes: int | None = None) -> Pruned:
        """Delete closed sessions that ended before a time, and the oldest while the log holds more than so much."""
        from dsh_runtime.services.sessions.prune import Pruning

        pruning = Pruning(self._clock(), before, max_bytes)
        while await self._store.run(pruning.step):
            pass
        return pruning.outcome()

    async def _prune_regularly(self) -> None:
        days, max_bytes = self.config.keep_days, self.config.max_bytes
        while True:
            before = None if days is None else self._clock() - int(days * _DAY_MS)
            await self.prune(before=before, max_bytes=max_bytes)
            await trio.sleep(_PRUNE_INTERVAL)
