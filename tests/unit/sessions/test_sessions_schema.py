"""The file: its version, migrations, and what is refused without a byte being written."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from sessions_kit import mount, query, whole_call

from dsh_runtime.services.sessions import LogError, schema
from dsh_runtime.services.sessions.files import log_path, open_to_read, open_to_write
from dsh_runtime.services.sessions.reading import Reader

DATA = Path(__file__).parent / "data"
_SHAPE = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"


def make(path: Path, script: str) -> Path:
    """A database made by a script."""
    path.parent.mkdir(exist_ok=True)
    db = sqlite3.connect(path)
    db.executescript(script)
    db.close()
    return path


def old_log(path: Path, version: int) -> Path:
    return make(path, (DATA / f"version_{version}.sql").read_text())


def test_every_older_version_has_a_fixture() -> None:
    """A new version does not come without a log of the one before it."""
    assert sorted(path.name for path in DATA.iterdir()) == [f"version_{n}.sql" for n in range(schema.VERSION + 1)]


@pytest.mark.parametrize("version", range(schema.VERSION + 1))
async def test_an_old_log_goes_on(root: Any, path: Path, version: int) -> None:
    """A log of any version is opened, migrated, and written to."""
    old = query(old_log(path, version), "SELECT id, time, type FROM events ORDER BY id")
    sessions = await mount(root, path)
    await whole_call(sessions)
    assert query(path, "SELECT id, time, type FROM events ORDER BY id")[: len(old)] == old


@pytest.mark.parametrize("version", range(schema.VERSION + 1))
def test_a_migrated_log_is_like_a_new_one(path: Path, tmp_path: Path, version: int) -> None:
    """After migration the tables and indices are those of a new log."""
    open_to_write(old_log(path, version), "normal").close()
    open_to_write(tmp_path / "new.db", "normal").close()
    shape = [(kind, name, " ".join(sql.split())) for kind, name, sql in query(path, _SHAPE)]
    assert shape == [(kind, name, " ".join(sql.split())) for kind, name, sql in query(tmp_path / "new.db", _SHAPE)]


def test_version_0_keeps_calls_and_results_together(path: Path) -> None:
    """Results find their calls though one id was used twice."""
    open_to_write(old_log(path, 0), "normal").close()
    with Reader(path) as reader:
        calls = [(call.session, call.name, call.outcome, call.code) for call in reader.calls()]
    assert calls == [
        ("first", "echo", "failure", "DENIED"),
        ("second", "grep", "open", None),
        ("first", "echo", "success", None),
    ]


def test_a_migration_that_fails_leaves_the_old_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a migration or nothing of it."""
    monkeypatch.setattr(schema, "MIGRATIONS", ((*schema.MIGRATIONS[0], "INSERT INTO nowhere VALUES (1)"),))
    before = "\n".join(sqlite3.connect(old_log(path, 0)).iterdump())
    with pytest.raises(LogError):
        open_to_write(path, "normal")
    assert "\n".join(sqlite3.connect(path).iterdump()) == before


def test_a_new_log_says_what_it_is(path: Path) -> None:
    """Tools can tell a session log from other databases."""
    open_to_write(path, "normal").close()
    assert query(path, "PRAGMA application_id") == [(schema.APPLICATION_ID,)]
    assert query(path, "PRAGMA user_version") == [(schema.VERSION,)]


async def test_only_the_user_can_read_a_new_log(sessions: Any, path: Path) -> None:
    """Arguments and results are nobody else's business."""
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"sessions.db", "sessions.db-wal", "sessions.db-shm"} < set(modes)


REFUSED = {
    "newer": (f"PRAGMA application_id = {schema.APPLICATION_ID}; PRAGMA user_version = 99; CREATE TABLE t (a)", "99"),
    "foreign": ("CREATE TABLE notes (text)", "another program"),
    "foreign with a version": ("PRAGMA user_version = 1; CREATE TABLE notes (text)", "another program"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_not_written(path: Path, case: str) -> None:
    """A log of a newer version and another program's database stay as they are, byte for byte."""
    script, word = REFUSED[case]
    before = make(path, script).read_bytes()
    with pytest.raises(LogError, match=word):
        open_to_write(path, "normal")
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["sessions.db"]


@pytest.mark.parametrize("text", [b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5_000])
def test_a_corrupt_file_is_refused_and_not_written(path: Path, text: bytes) -> None:
    """The error says what to do, and what can be saved is still there."""
    path.parent.mkdir()
    path.write_bytes(text)
    with pytest.raises(LogError, match="move it"):
        open_to_write(path, "normal")
    assert path.read_bytes() == text


def test_damage_inside_is_an_error_of_the_log(path: Path) -> None:
    """A table that cannot be read stops the start, not with a traceback of SQLite."""
    old_log(path, 1)
    page = query(path, "PRAGMA page_size")[0][0]
    content = bytearray(path.read_bytes())
    content[page : 4 * page] = b"\xff" * (3 * page)
    path.write_bytes(content)
    from dsh_runtime.services.sessions.log import open_log

    with pytest.raises(LogError) as caught:
        open_log(path, "normal", 0)
    assert caught.value.code == "LOG_UNAVAILABLE"


def test_an_empty_file_becomes_a_log(path: Path) -> None:
    """A file that a crash left empty right after it was made is begun anew."""
    path.parent.mkdir()
    path.touch()
    open_to_write(path, "normal").close()
    assert query(path, "PRAGMA user_version") == [(schema.VERSION,)]


@pytest.mark.parametrize("name", ["", ":memory:", "file:log?mode=memory"])
def test_a_log_in_memory_is_refused(name: str) -> None:
    """It would not outlive the process that it reports on."""
    with pytest.raises(LogError, match="outlives"):
        log_path(name)


def test_the_default_is_in_the_users_state_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a path, the log stands where such files stand on this system."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert log_path(None) == tmp_path / "dsh" / "sessions.db"


def test_reading_what_is_not_there_makes_nothing(path: Path) -> None:
    """A reader never creates a log."""
    with pytest.raises(LogError, match="there is none"):
        open_to_read(path)
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("sql", "index"),
    [
        ("SELECT * FROM events WHERE session = 1 AND seq > 5 ORDER BY seq", "events_of_session"),
        ("SELECT * FROM events WHERE call_id = 'c' AND type = 'tool/call'", "calls_by_id"),
        ("SELECT * FROM events WHERE session = 1 AND call = 2 AND type = 'tool/result'", "results_by_call"),
    ],
)
def test_looking_up_uses_an_index(path: Path, sql: str, index: str) -> None:
    """Sessions and calls are found without reading the whole log."""
    open_to_write(path, "normal").close()
    [plan] = query(path, f"EXPLAIN QUERY PLAN {sql}")
    assert index in plan[3]


async def test_the_service_does_not_start_on_a_log_that_it_refuses(root: Any, path: Path) -> None:
    """The plugin fails, so the host does not start and no call is served."""
    make(path, REFUSED["newer"][0])
    with pytest.raises(LogError, match="newer dsh-runtime"):
        await mount(root, path)
    assert root.get("sessions") is None
