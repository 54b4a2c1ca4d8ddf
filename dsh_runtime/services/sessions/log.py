"""The log as one process has it open, and the steps that begin and end what it holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from dsh_runtime.services.sessions.events import SessionStarted
from dsh_runtime.services.sessions.files import Sync, open_to_write, sqlite_errors
from dsh_runtime.services.sessions.owners import Lock, bury_dead, close_sessions, sweep, take_lock
from dsh_runtime.services.sessions.schema import insert_sql, transaction

if TYPE_CHECKING:
    import sqlite3


@frozen(eq=False)
class OpenLog:
    """A connection to write through, and the owner under whose number this process writes."""

    db: sqlite3.Connection
    owner: int
    lock: Lock


def open_log(path: Path, sync: Sync, now: int) -> OpenLog:
    """Open the log as a new owner, after closing what dead ones left open."""
    db = open_to_write(path, sync)
    try:
        lock = take_lock(path)
        try:
            with sqlite_errors(path):
                return OpenLog(db, _move_in(db, path, lock, now), lock)
        except BaseException:
            lock.release()
            raise
    except BaseException:
        db.close()
        raise


def _move_in(db: sqlite3.Connection, path: Path, lock: Lock, now: int) -> int:
    with transaction(db):
        bury_dead(db, path, now)
        db.execute("INSERT INTO owners (lock, pid, started) VALUES (?, ?, ?)", (lock.path.name, os.getpid(), now))
        (number,) = db.execute("SELECT last_insert_rowid()").fetchone()
    sweep(db, path)
    owner: int = number
    return owner


def begin_session(
    db: sqlite3.Connection, owner: int | None, id: str, label: str, front_door: str, now: int, payload: str
) -> int:
    """Add a session and its first event; give back its number."""
    db.execute(
        "INSERT INTO sessions (id, label, front_door, owner, started) VALUES (?, ?, ?, ?, ?)",
        (id, label, front_door, owner, now),
    )
    number: int = db.execute("SELECT last_insert_rowid()").fetchone()[0]
    db.execute(insert_sql(1), (number, 1, now, SessionStarted.type, None, None, None, None, None, payload))
    return number


def resume_session(db: sqlite3.Connection, number: int, owner: int) -> bool:
    """Open a session again that was closed with the log; whether it is still there."""
    sql = "UPDATE sessions SET ended = NULL, ending = NULL, owner = ? WHERE number = ?"
    return db.execute(sql, (owner, number)).rowcount == 1


def end_session(db: sqlite3.Connection, number: int, now: int) -> None:
    """Mark a session as closed."""
    db.execute("UPDATE sessions SET ended = ?, ending = 'closed', owner = NULL WHERE number = ?", (now, number))


def end_owner(db: sqlite3.Connection, owner: int, now: int) -> None:
    """Close what an owner has still open, and forget the owner."""
    close_sessions(db, owner, now, "closed", "the log was closed before the call had a result")
    db.execute("DELETE FROM owners WHERE number = ?", (owner,))
