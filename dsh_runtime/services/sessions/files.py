"""Where the log is, and how its file is opened: to write, or to read."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias
from urllib.parse import quote

from dsh_runtime.services.sessions.errors import LogError, log_error
from dsh_runtime.services.sessions.schema import bring_up_to_date, version_of

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

Sync: TypeAlias = Literal["normal", "full", "off"]

#: How long a writer waits for a lock that another process holds.
LOCK_TIMEOUT: Final = 10.0
#: The size that the -wal file is cut back to after a peak.
_WAL_LIMIT: Final = 16_777_216
#: One statement for each size of group, and some more.
_STATEMENTS: Final = 256


def default_path() -> Path:
    """The log of this user."""
    return _state_folder() / "dsh" / "sessions.db"


def _state_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def log_path(path: str | os.PathLike[str] | None) -> Path:
    """The path of a log; a log in memory would not outlive the process that it reports on, and is refused."""
    if path is None:
        return default_path()
    text = os.fspath(path)
    if not text or text == ":memory:" or text.startswith("file:"):
        raise LogError(f"session log {text!r}: a log is a file that outlives its process; name the path of a file")
    return Path(text).expanduser().absolute()


def identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at ``path``, ``None`` if none can be found there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_to_write(path: Path, sync: Sync) -> sqlite3.Connection:
    """Open the log, or begin one that only this user can read. Nothing is written to a file that is refused."""
    with sqlite_errors(path):
        _look_or_create(path)
        db = _connect(path, "mode=rw")
        try:
            _set_up(db, path, sync)
        except BaseException:
            db.close()
            raise
        return db


def _look_or_create(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        open_to_read(path).close()
    except OSError as error:
        raise LogError(f"session log {str(path)!r}: it cannot be made ({error.strerror}); name another path") from error


def _set_up(db: sqlite3.Connection, path: Path, sync: Sync) -> None:
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise LogError(f"session log {str(path)!r}: its file system allows no write-ahead log; name another path")
    # Where nobody waits, a commit need be no faster: the file outlives the death of the machine in any case.
    db.execute(f"PRAGMA synchronous = {'normal' if sync == 'off' else sync}")
    db.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
    bring_up_to_date(db, path)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open the log to read, whether or not somebody writes it; it has to be there."""
    if not path.exists():
        raise LogError(f"session log {str(path)!r}: there is none; run something that writes it, or name another path")
    with sqlite_errors(path):
        try:
            return _connect_to_read(path, "mode=ro")
        except sqlite_error() as error:
            if not _stands_still(path, error):
                raise
            return _connect_to_read(path, "immutable=1")


def _connect_to_read(path: Path, how: str) -> sqlite3.Connection:
    db = _connect(path, how)
    try:
        version_of(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _stands_still(path: Path, error: sqlite3.Error) -> bool:
    """Whether the log only lacks a folder to keep its locks in: an archive that nobody can be writing."""
    name = error.sqlite_errorname
    return name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")) and not path.with_name(path.name + "-wal").exists()


def _connect(path: Path, how: str) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(
        f"file:{quote(str(path))}?{how}",
        uri=True,
        timeout=LOCK_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )


def sqlite_error() -> type[sqlite3.Error]:
    """The base of what SQLite raises."""
    import sqlite3

    return sqlite3.Error


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into a :class:`LogError`."""
    try:
        yield
    except sqlite_error() as error:
        raise log_error(path, error) from error
