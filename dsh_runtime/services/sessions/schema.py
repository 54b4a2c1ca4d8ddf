"""The tables of the log, their version, and the way from older ones.

    owners    one row for each process that writes now; its lock file tells whether it lives
    sessions  one row for each session; ``ended`` is null while it is open
    events    append only. ``id`` is the order of commit, ``seq`` the order within the session, whatever the clock did;
              ``call`` is the ``seq`` of the ``tool/call`` that an event belongs to

``PRAGMA user_version`` is the version of the tables, ``PRAGMA application_id`` says that the file is a session log.
A change of the tables adds a step to ``MIGRATIONS``; a step that has been released is never changed.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from dsh_runtime.services.sessions.errors import LogError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

APPLICATION_ID: Final = 0x44534C47

_TABLES: Final = (
    """CREATE TABLE owners (number INTEGER PRIMARY KEY, lock TEXT NOT NULL, pid INTEGER NOT NULL,
        started INTEGER NOT NULL)""",
    """CREATE TABLE sessions (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, label TEXT NOT NULL,
        front_door TEXT NOT NULL, owner INTEGER, started INTEGER NOT NULL, ended INTEGER, ending TEXT)""",
    """CREATE TABLE events (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL,
        time INTEGER NOT NULL, type TEXT NOT NULL, call INTEGER, call_id TEXT, name TEXT, outcome TEXT, code TEXT,
        payload TEXT NOT NULL)""",
    "CREATE UNIQUE INDEX events_of_session ON events (session, seq)",
    "CREATE INDEX results_by_call ON events (session, call) WHERE type = 'tool/result'",
    "CREATE INDEX calls_by_id ON events (call_id) WHERE type = 'tool/call'",
)

# Version 0 had sessions by name and kept everything but the time and the type in the payload.
_FROM_0: Final = (
    "ALTER TABLE sessions RENAME TO sessions_0",
    "ALTER TABLE events RENAME TO events_0",
    *_TABLES,
    """INSERT INTO sessions (id, label, front_door, started, ended, ending)
        SELECT id, label, 'unknown', started, started, 'interrupted' FROM sessions_0 ORDER BY started, id""",
    """INSERT INTO events (id, session, seq, time, type, call_id, name, outcome, code, payload)
        SELECT e.id, s.number, row_number() OVER (PARTITION BY e.session ORDER BY e.id), e.time, e.type,
            json_extract(e.payload, '$.call_id'), iif(e.type = 'tool/call', json_extract(e.payload, '$.name'), NULL),
            json_extract(e.payload, '$.outcome'), json_extract(e.payload, '$.code'), e.payload
        FROM events_0 e JOIN sessions s ON s.id = e.session ORDER BY e.id""",
    """UPDATE events SET call = (SELECT max(c.seq) FROM events c WHERE c.session = events.session
            AND c.call_id = events.call_id AND c.type = 'tool/call' AND c.seq <= events.seq)
        WHERE call_id IS NOT NULL""",
    "UPDATE events SET call_id = NULL WHERE type <> 'tool/call'",
    "DROP TABLE events_0",
    "DROP TABLE sessions_0",
)

#: What leads from version ``n`` to ``n + 1``, at place ``n``.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (_FROM_0,)
VERSION: Final = len(MIGRATIONS)

#: One event as it stands in the table: session, seq, time, type, call, call_id, name, outcome, code, payload.
Row: TypeAlias = "tuple[int, int, int, str, int | None, str | None, str | None, str | None, str | None, str]"
COLUMNS: Final = "session, seq, time, type, call, call_id, name, outcome, code, payload"


@lru_cache(128)
def insert_sql(rows: int) -> str:
    """The statement that inserts so many events at once."""
    places = ",".join("?" * 10)
    return f"INSERT INTO events ({COLUMNS}) VALUES " + ",".join([f"({places})"] * rows)


def version_of(db: sqlite3.Connection, path: Path) -> int | None:
    """The version of the log in ``db``, ``None`` for an empty database; refuses what is no log, or a newer one."""
    application, version = pragma(db, "application_id"), pragma(db, "user_version")
    if not application and not version and db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
        return None
    if application != APPLICATION_ID:
        raise LogError(f"session log {str(path)!r}: the file is a database of another program; name another path")
    if version > VERSION:
        raise LogError(
            f"session log {str(path)!r}: its version is {version}, and this dsh-runtime knows none above {VERSION}; "
            "use a newer dsh-runtime, or name another path"
        )
    return version


def bring_up_to_date(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or migrate older ones, in one transaction: all of it or nothing."""
    if version_of(db, path) == VERSION:
        return
    with transaction(db):
        version = version_of(db, path)  # Another process may have been first.
        for statement in _way_from(version):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of the body or nothing; nobody else writes meanwhile."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _way_from(version: int | None) -> tuple[str, ...]:
    if version is None:
        return _TABLES
    return tuple(statement for step in MIGRATIONS[version:] for statement in step)


def pragma(db: sqlite3.Connection, name: str) -> int:
    """A number that SQLite keeps about a database."""
    number: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return number
