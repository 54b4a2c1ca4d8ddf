"""Reading the log: sessions, calls, one call with everything, events, JSON lines.

A :class:`Reader` has a read-only connection of its own and blocks; in the loop it belongs into a worker thread. It
reads page by page, so that it never holds up the writer's clearing of the write-ahead log.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.events import Event, event_of
from dsh_runtime.services.sessions.files import open_to_read, sqlite_errors
from dsh_runtime.services.sessions.schema import VERSION, version_of

if TYPE_CHECKING:
    pass

_PAGE: Final = 2_000
_NO_END: Final = 2**62


@frozen
class SessionInfo:
    """A session. Times are in milliseconds of UTC; ``ended`` is ``None`` while it is open."""

    id: str
    label: str
    front_door: str
    started: int
    ended: int | None
    ending: str | None
    calls: int


@frozen
class CallInfo:
    """A call. ``outcome`` is success, failure, interrupted, or open while there is no result; ``seq`` its place."""

    session: str
    seq: int
    time: int
    call_id: str
    name: str
    outcome: str
    code: str | None
    ms: float | None


@frozen
class CallFilter:
    """Which calls to list; what is ``None`` does not matter. ``since`` is in milliseconds of UTC."""

    session: str | None = None
    tool: str | None = None
    outcome: str | None = None
    code: str | None = None
    since: int | None = None
    limit: int = 100


@frozen(slots=False)
class StoredEvent:
    """An event as it stands in the log. ``id`` is its place in the whole log, ``seq`` that in its session."""

    id: int
    session: str
    seq: int
    time: int
    type: str
    call: int | None
    text: str

    @property
    def payload(self) -> Mapping[str, Any]:
        """The event's members."""
        payload: Mapping[str, Any] = json.loads(self.text)
        return payload

    @property
    def event(self) -> Event:
        """The event as a typed value."""
        return event_of(self.type, self.payload)

    def line(self) -> str:
        """The event as one line of JSON."""
        call = "null" if self.call is None else self.call
        return (
            f'{{"id":{self.id},"session":{json.dumps(self.session)},"seq":{self.seq},"time":{self.time},'
            f'"type":"{self.type}","call":{call},"payload":{self.text}}}'
        )


@frozen
class CallRecord:
    """A call with all its events, in order."""

    info: CallInfo
    events: tuple[StoredEvent, ...]


_SESSIONS: Final = """
    SELECT s.id, s.label, s.front_door, s.started, s.ended, s.ending,
        (SELECT count(*) FROM events e WHERE e.session = s.number AND e.type = 'tool/call')
    FROM sessions s WHERE {where} ORDER BY s.number DESC LIMIT ?"""

_CALLS: Final = """
    SELECT s.id, c.seq, c.time, c.call_id, c.name, coalesce(r.outcome, 'open'), r.code, json_extract(r.payload, '$.ms')
    FROM events c JOIN sessions s ON s.number = c.session
    LEFT JOIN events r ON r.session = c.session AND r.call = c.seq AND r.type = 'tool/result'
    WHERE c.type = 'tool/call' AND {where} ORDER BY c.id DESC LIMIT ?"""

# The ids that begin with a text, as many as are needed to see that there are several.
_CALL_IDS: Final = """
    SELECT DISTINCT e.call_id FROM events e JOIN sessions s ON s.number = e.session
    WHERE e.type = 'tool/call' AND e.call_id >= :start AND e.call_id < :start || char(1114111)
        AND substr(e.call_id, 1, length(:start)) = :start {where} ORDER BY e.call_id LIMIT 3"""

_EVENT: Final = """
    SELECT e.id, s.id, e.seq, e.time, e.type, e.call, e.payload
    FROM events e JOIN sessions s ON s.number = e.session"""

# From the call to its result; what stands between and does not belong to it is skipped.
_EVENTS_OF_CALL: Final = f"""{_EVENT}
    WHERE s.id = ? AND e.seq >= ? AND e.call = ? AND e.seq <= coalesce(
        (SELECT r.seq FROM events r WHERE r.session = e.session AND r.call = e.call AND r.type = 'tool/result'), e.seq)
    ORDER BY e.seq"""


class Reader:
    """Reads the log at ``path``. Use it in a ``with``, or close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._db = open_to_read(path)
        version = version_of(self._db, path)
        if version != VERSION:
            self._db.close()
            raise LogError(
                f"session log {str(path)!r}: its version is {version or 0} and has to be brought to {VERSION} first; "
                "run something that writes it"
            )

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def sessions(self, *, limit: int = 100, without_idle: str | None = None) -> list[SessionInfo]:
        """The sessions, the newest first; without those of one front door that have no calls."""
        where = "s.front_door IS NOT ? OR EXISTS (SELECT 1 FROM events c WHERE c.session = s.number AND c.type = ?)"
        rows = self._rows(_SESSIONS.format(where=where), without_idle, "tool/call", limit)
        return [SessionInfo(*row) for row in rows]

    def session(self, id: str) -> SessionInfo:
        """A session by its id, or by a beginning of it that no other has."""
        where = "substr(s.id, 1, length(?)) = ?"
        found = [SessionInfo(*row) for row in self._rows(_SESSIONS.format(where=where), id, id, 2)]
        whole = [session for session in found if session.id == id]
        if len(whole or found) == 1:
            return (whole or found)[0]
        problem = (
            "several sessions begin so; give more of the id" if found else "there is none; 'dsh-run log' lists them"
        )
        raise LogError(f"session {id!r} of {str(self.path)!r}: {problem}", code="UNKNOWN_SESSION")

    def calls(self, filter: CallFilter = CallFilter()) -> list[CallInfo]:  # frozen
        """The calls that a filter lets through, the newest first."""
        tests = {
            "s.id = ?": filter.session,
            "c.name = ?": filter.tool,
            "coalesce(r.outcome, 'open') = ?": filter.outcome,
            "r.code = ?": filter.code,
            "c.time >= ?": filter.since,
        }
        used = {test: value for test, value in tests.items() if value is not None}
        where = " AND ".join(used) or "true"
        return [CallInfo(*row) for row in self._rows(_CALLS.format(where=where), *used.values(), filter.limit)]

    def call(self, call_id: str, *, session: str | None = None) -> CallRecord:
        """The newest call of an id, of one session or of all, with everything that is known of it."""
        found = self._newest(call_id, session)
        if found is None:
            text = f"call {call_id!r} of {str(self.path)!r}: there is none; 'dsh-run log calls' lists them"
            raise LogError(text, code="UNKNOWN_CALL")
        return self._record(found)

    def _newest(self, call_id: str, session: str | None) -> CallInfo | None:
        where = "c.call_id = ?" + (" AND s.id = ?" if session is not None else "")
        asked = [call_id] if session is None else [call_id, session]
        return next((CallInfo(*row) for row in self._rows(_CALLS.format(where=where), *asked, 1)), None)

    def find_call(self, start: str, *, session: str | None = None) -> CallRecord:
        """The newest call of an id, or of the only id that begins so.

        Calls that were made inside others do not stand in the way of those.
        """
        found = self._newest(start, session)
        if found is not None:
            return self._record(found)
        ids = self._ids(start, session, "AND json_extract(e.payload, '$.root') IS NULL") or self._ids(start, session)
        if len(ids) > 1:
            text = f"call {start!r} of {str(self.path)!r}: several begin so ({', '.join(ids)}); give more of the id"
            raise LogError(text, code="UNKNOWN_CALL")
        return self.call(ids[0] if ids else start, session=session)

    def _ids(self, start: str, session: str | None, where: str = "") -> list[str]:
        """The ids that begin so, as many as show that there are several."""
        where += "" if session is None else " AND s.id = :session"
        with sqlite_errors(self.path):
            rows = self._db.execute(_CALL_IDS.format(where=where), {"start": start, "session": session}).fetchall()
        return [row[0] for row in rows]

    def call_at(self, session: str, seq: int) -> CallRecord:
        """The call at a place of a session."""
        rows = self._rows(_CALLS.format(where="s.id = ? AND c.seq = ?"), session, seq, 1)
        if not rows:
            where = f"call {seq} of session {session!r} of {str(self.path)!r}"
            text = f"{where}: there is none; 'dsh-run log calls' lists them"
            raise LogError(text, code="UNKNOWN_CALL")
        return self._record(CallInfo(*rows[0]))

    def nested(self, record: CallRecord, *, limit: int = 10_000) -> list[CallRecord]:
        """The calls that were made inside a call, at whatever depth, in order."""
        root = record.events[0].payload.get("root") or record.info.call_id
        last = record.events[-1].seq if record.info.outcome != "open" else _NO_END
        where = "s.id = ? AND c.seq > ? AND c.seq < ? AND json_extract(c.payload, '$.root') = ?"
        rows = self._rows(_CALLS.format(where=where), record.info.session, record.info.seq, last, root, limit)
        return [self._record(CallInfo(*row)) for row in reversed(rows)]

    def _record(self, info: CallInfo) -> CallRecord:
        rows = self._rows(_EVENTS_OF_CALL, info.session, info.seq, info.seq)
        return CallRecord(info, tuple(StoredEvent(*row) for row in rows))

    def events(self, *, session: str | None = None, after: int = 0) -> Iterator[StoredEvent]:
        """The events of a session (by its whole id) from behind the sequence ``after``, in order.

        Without a session those of all, in order of commit, from behind the id ``after``.
        """
        while page := self.page(session=session, after=after):
            yield from page
            after = page[-1].id if session is None else page[-1].seq

    def page(self, *, session: str | None = None, after: int = 0) -> list[StoredEvent]:
        """The next of :meth:`events`, at most some thousand."""
        if session is None:
            rows = self._rows(f"{_EVENT} WHERE e.id > ? ORDER BY e.id LIMIT ?", after, _PAGE)
        else:
            rows = self._rows(f"{_EVENT} WHERE s.id = ? AND e.seq > ? ORDER BY e.seq LIMIT ?", session, after, _PAGE)
        return [StoredEvent(*row) for row in rows]

    def export(self, *, session: str | None = None) -> Iterator[str]:
        """The events as lines of JSON, without the line's end."""
        for event in self.events(session=session):
            yield event.line()

    def last_id(self) -> int:
        """The id of the newest event."""
        last: int = self._rows("SELECT coalesce(max(id), 0) FROM events")[0][0]
        return last

    def last_seq(self, session: str) -> int:
        """The sequence of a session's newest event."""
        sql = "SELECT coalesce(max(e.seq), 0) FROM events e JOIN sessions s ON s.number = e.session WHERE s.id = ?"
        last: int = self._rows(sql, session)[0][0]
        return last

    def data_version(self) -> int:
        """A number that changes whenever another connection has committed."""
        version: int = self._rows("PRAGMA data_version")[0][0]
        return version

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        with sqlite_errors(self.path):
            return self._db.execute(sql, values).fetchall()
