"""Which processes write the log, and what the dead ones left open.

Every writer holds the lock (``flock``) of a file of its own beside the database for as long as it lives; the kernel
lets go of it however the process ends. Who opens the log tries the locks of the others: a lock that can be had belonged
to a dead writer, whose calls without a result are closed as interrupted, and whose sessions end. On a system without
``flock`` nobody can tell; there the sessions of other writers are left as they are.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import frozen

from dsh_runtime.services.sessions.errors import LogError
from dsh_runtime.services.sessions.events import INTERRUPTED, TOOL_RESULT, ToolResult
from dsh_runtime.services.sessions.schema import Row, insert_sql
from dsh_runtime.values.compact import dump

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_UNANSWERED: Final = """
    SELECT c.seq FROM events c WHERE c.session = ? AND c.type = 'tool/call' AND NOT EXISTS (
        SELECT 1 FROM events r WHERE r.session = c.session AND r.call = c.seq AND r.type = 'tool/result')
    ORDER BY c.seq"""


@frozen
class Lock:
    """The lock of a living writer."""

    path: Path
    file: int

    def release(self) -> None:
        """Let go; the file goes too."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self.file)


def _prefix(log: Path) -> str:
    return f"{log.name}-owner-"


def take_lock(log: Path) -> Lock:
    """A lock of one's own. Somebody who tidies up may take a new file away before it is locked: then try another."""
    while True:
        path = log.with_name(_prefix(log) + secrets.token_hex(8))
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except OSError as error:
            raise LogError(
                f"session log {str(log)!r}: its folder cannot be written ({error.strerror}); name another path"
            ) from error
        if _try_lock(file) and _is_at(path, file):
            return Lock(path, file)
        os.close(file)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def _try_lock(file: int) -> bool:
    """Whether the lock could be had; without ``flock`` it always can, by its maker."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _can_tell() -> bool:
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


def bury_dead(db: sqlite3.Connection, log: Path, now: int) -> None:
    """Close what dead writers left open, and take away their lock files. Runs in a transaction of the caller."""
    if not _can_tell():
        return
    for number, name in db.execute("SELECT number, lock FROM owners").fetchall():
        with _dead(log.with_name(name)) as dead:
            if dead:
                close_sessions(db, number, now, "interrupted", "the process ended before the call had a result")
                db.execute("DELETE FROM owners WHERE number = ?", (number,))


def sweep(db: sqlite3.Connection, log: Path) -> None:
    """Take away lock files of writers that died before the log knew them."""
    if not _can_tell():
        return
    known = {name for (name,) in db.execute("SELECT lock FROM owners")}
    for path in log.parent.glob(_prefix(log) + "*"):
        if path.name not in known:
            with _dead(path):
                pass


@contextlib.contextmanager
def _dead(path: Path) -> Iterator[bool]:
    """Whether the writer whose lock is at ``path`` is dead; if so its file is taken away at the end."""
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield True
        return
    except OSError:
        yield False
        return
    lock = Lock(path, file)
    if not _try_lock(file):
        os.close(file)
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def close_sessions(db: sqlite3.Connection, owner: int, now: int, ending: str, why: str) -> None:
    """End the open sessions of an owner, and its calls that have no result."""
    open_ones = db.execute("SELECT number FROM sessions WHERE owner = ? AND ended IS NULL", (owner,)).fetchall()
    for (session,) in open_ones:
        _interrupt_calls(db, session, now, why)
        db.execute("UPDATE sessions SET ended = ?, ending = ?, owner = NULL WHERE number = ?", (now, ending, session))


def _interrupt_calls(db: sqlite3.Connection, session: int, now: int, why: str) -> None:
    (last,) = db.execute("SELECT max(seq) FROM events WHERE session = ?", (session,)).fetchone()
    payload = _interruption(why)
    for place, (call,) in enumerate(db.execute(_UNANSWERED, (session,)).fetchall(), 1):
        row: Row = (session, last + place, now, TOOL_RESULT, call, None, None, "interrupted", INTERRUPTED, payload)
        db.execute(insert_sql(1), row)


def _interruption(why: str) -> str:
    error = {"message": why, "name": "Interrupted", "code": INTERRUPTED}
    return dump(ToolResult(outcome="interrupted", code=INTERRUPTED, error=error).payload())
