"""The error of the session log, and the words for what SQLite reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from dsh_hookspecs import HarnessError

if TYPE_CHECKING:
    import sqlite3

# What an error of SQLite means to whoever runs the host: by the beginning of its name, the first that fits.
_MEANINGS: Final = (
    ("SQLITE_FULL", "the disk is full; free some space and start the log again"),
    ("SQLITE_READONLY", "it cannot be written; make the file and its folder writable, or name another path"),
    ("SQLITE_CANTOPEN", "it cannot be opened; see that its folder exists and can be written, or name another path"),
    ("SQLITE_PERM", "it cannot be opened; see that it belongs to this user, or name another path"),
    ("SQLITE_AUTH", "it cannot be opened; see that it belongs to this user, or name another path"),
    ("SQLITE_NOTADB", "it is no SQLite database; move it away, or name another path"),
    ("SQLITE_CORRUPT", "it is damaged; move it and its -wal file away, and save what is left with 'sqlite3 .recover'"),
    ("SQLITE_BUSY", "another process keeps it locked; end that process, or name another path"),
    ("SQLITE_IOERR", "the disk fails or has no room; see to it and start the log again"),
)


class LogError(HarnessError):
    """The session log cannot keep its promise: it does not open, or a record could not be committed."""

    default_code: ClassVar[str | None] = "LOG_UNAVAILABLE"


def log_error(path: Path, error: sqlite3.Error) -> LogError:
    """What an error of SQLite means for the log at ``path``."""
    name = getattr(error, "sqlite_errorname", None) or type(error).__name__
    meaning = next((text for start, text in _MEANINGS if name.startswith(start)), "it cannot be used")
    return LogError(f"session log {str(path)!r}: {meaning} (SQLite says: {error}, {name})")
