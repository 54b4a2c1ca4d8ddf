"""Deleting old sessions, by age and by size, never one that is open.

It goes step by step, each a short transaction, so that no writer waits for long. The first step that deletes adds a
session of its own that says so: the log tells that it was pruned, and the ids of events go on rising.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define, frozen

from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.events import SessionStarted
from dsh_runtime.services.sessions.files import open_to_write, sqlite_errors
from dsh_runtime.services.sessions.log import begin_session, end_session
from dsh_runtime.services.sessions.owners import bury_dead
from dsh_runtime.services.sessions.schema import pragma, transaction
from dsh_runtime.services.sessions.session import new_session_id
from dsh_runtime.values.compact import dump

if TYPE_CHECKING:
    import sqlite3

_CHUNK: Final = 1_000
_OLDEST: Final = """
    SELECT number, ended FROM sessions WHERE ended IS NOT NULL AND number IS NOT ? ORDER BY ended, number LIMIT 1"""


@frozen
class Pruned:
    """What was deleted, and the bytes that the log's pages hold now."""

    sessions: int
    events: int
    bytes: int


@define
class Pruning:
    """Deletes closed sessions that ended before ``before``, and the oldest while the log is above ``max_bytes``."""

    now: int
    before: int | None = None
    max_bytes: int | None = None
    sessions: int = 0
    events: int = 0
    bytes: int = 0
    _trace: int | None = None

    def step(self, db: sqlite3.Connection) -> bool:
        """Delete a chunk, in a transaction of the caller; whether there is more to do."""
        victim = self._victim(db)
        if victim is None:
            self.bytes = live_bytes(db)
            return False
        if self._trace is None:
            self._trace = self._leave_trace(db)
        self._delete_chunk(db, victim)
        return True

    def outcome(self) -> Pruned:
        """What has been done so far."""
        return Pruned(self.sessions, self.events, self.bytes)

    def _victim(self, db: sqlite3.Connection) -> int | None:
        row = db.execute(_OLDEST, (self._trace,)).fetchone()
        if row is None:
            return None
        too_old = self.before is not None and row[1] < self.before
        too_much = self.max_bytes is not None and live_bytes(db) > self.max_bytes
        number: int = row[0]
        return number if too_old or too_much else None

    def _leave_trace(self, db: sqlite3.Connection) -> int:
        note = {"before": self.before, "max_bytes": self.max_bytes}
        event = SessionStarted(label="log prune", front_door="log", note=note)
        name = new_session_id(self.now)
        number = begin_session(db, None, name, event.label, event.front_door, self.now, dump(event.payload()))
        end_session(db, number, self.now)
        return number

    def _delete_chunk(self, db: sqlite3.Connection, session: int) -> None:
        deleted = db.execute(
            "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE session = ? ORDER BY seq LIMIT ?)",
            (session, _CHUNK),
        ).rowcount
        self.events += deleted
        if deleted < _CHUNK:
            db.execute("DELETE FROM sessions WHERE number = ?", (session,))
            self.sessions += 1


def live_bytes(db: sqlite3.Connection) -> int:
    """The bytes of the pages in use; pages that were freed are used again before the file grows."""
    live: int = (pragma(db, "page_count") - pragma(db, "freelist_count")) * pragma(db, "page_size")
    return live


def prune_log(
    path: Path, *, before: int | None = None, max_bytes: int | None = None, vacuum: bool = False, now: int | None = None
) -> Pruned:
    """Prune the log at ``path`` from outside; ``vacuum`` also gives the freed pages back, if nobody writes the log."""
    moment = time.time_ns() // 1_000_000 if now is None else now
    if not path.exists():
        raise LogError(f"session log {str(path)!r}: there is none, so nothing can be deleted; name another path")
    db = open_to_write(path, "normal")
    try:
        with sqlite_errors(path):
            pruning = Pruning(moment, before, max_bytes)
            with transaction(db):
                bury_dead(db, path, moment)
            while _step(db, pruning):
                pass
            if vacuum:
                _vacuum(db, path)
            return pruning.outcome()
    finally:
        db.close()


def _step(db: sqlite3.Connection, pruning: Pruning) -> bool:
    with transaction(db):
        return pruning.step(db)


def _vacuum(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("SELECT count(*) FROM owners").fetchone()[0]:
        raise LogError(f"session log {str(path)!r}: a process writes it; end that process to give pages back")
    db.execute("VACUUM")
