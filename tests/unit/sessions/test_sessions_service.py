"""The service: who is in which session, restarts, failure of the log, what is left behind."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
from sessions_kit import Masker, call, failure, mount, query, records, success, whole_call

from dsh_runtime.services.sessions import LogError, SessionsConfig


def session_rows(path: Path) -> dict[str, tuple[Any, ...]]:
    """Sessions by label: number, ended?, ending."""
    rows = query(path, "SELECT label, number, ended IS NOT NULL, ending FROM sessions")
    return {row[0]: row[1:] for row in rows}


async def test_a_session_starts_with_its_event(sessions: Any, path: Path) -> None:
    """Whose it is, through which front door, in which process."""
    await sessions.open_session("agent-1", label="Claude", front_door="mcp")
    started = records(path, "session/started")[-1]
    assert started.payload == {"label": "Claude", "front_door": "mcp", "pid": os.getpid(), "agent": "agent-1"}


async def test_calls_go_to_the_session_of_their_agent(sessions: Any, path: Path) -> None:
    """Each agent's calls stand together."""
    await sessions.open_session("one", label="one", front_door="mcp")
    await sessions.open_session("two", label="two", front_door="mcp")
    await whole_call(sessions, "a", agent="one")
    await whole_call(sessions, "b", agent="two")
    numbers = {label: row[0] for label, row in session_rows(path).items()}
    assert [record.session for record in records(path, "tool/call")] == [numbers["one"], numbers["two"]]


async def test_calls_without_a_session_go_to_that_of_the_process(sessions: Any, path: Path) -> None:
    """No call goes unlogged for want of a session."""
    await whole_call(sessions, agent="nobody knows")
    await whole_call(sessions, agent=None)
    assert {record.session for record in records(path, "tool/call")} == {sessions.session_of(None).number}


async def test_nested_calls_stay_in_the_session_of_their_parent(sessions: Any, path: Path) -> None:
    """Whatever agent a nested dispatcher names, the tree stays whole."""
    session = await sessions.open_session("one", label="one", front_door="mcp")
    outer = call("outer", agent="one")
    await sessions.called(outer)
    await whole_call(sessions, "inner", parent=outer.token, agent="other")
    assert {record.session for record in records(path, "tool/call")} == {session.number}


async def test_one_agent_has_one_open_session(sessions: Any) -> None:
    """A second one is refused with the id of the first."""
    session = await sessions.open_session("one", label="one", front_door="mcp")
    with pytest.raises(LogError, match=session.id):
        await sessions.open_session("one", label="again", front_door="mcp")


async def test_closing_a_session_ends_it(sessions: Any, path: Path) -> None:
    """Afterwards the agent may have another."""
    session = await sessions.open_session("one", label="one", front_door="mcp")
    await session.close()
    await session.close()
    assert session_rows(path)["one"][1:] == (1, "closed")
    assert sessions.session_of("one") is sessions.session_of(None)
    await sessions.open_session("one", label="one again", front_door="mcp")


async def test_a_session_ends_with_the_result_of_its_last_call(sessions: Any, path: Path) -> None:
    """Closing does not cut off what is under way."""
    session = await sessions.open_session("one", label="one", front_door="mcp")
    run = call(agent="one")
    await sessions.called(run)
    await session.close()
    assert session_rows(path)["one"][1:] == (0, None)
    await sessions.finished(run, success(), None)
    await whole_call(sessions)  # The end is committed in its turn.
    assert session_rows(path)["one"][1:] == (1, "closed")


async def test_the_end_of_the_host_ends_its_sessions(root: Any, path: Path) -> None:
    """An orderly end leaves no session and no call open."""
    sessions = await mount(root, path)
    await sessions.open_session("one", label="one", front_door="mcp")
    await sessions.called(call(agent="one"))
    await root.fiber.kernel.close()
    assert [row[1:] for row in session_rows(path).values()] == [(1, "closed"), (1, "closed")]
    assert [record.code for record in records(path, "tool/result")] == ["INTERRUPTED"]
    assert query(path, "SELECT * FROM owners") == []


async def test_nothing_is_left_behind(root: Any, path: Path) -> None:
    """No thread, no lock file, no write-ahead log."""
    before = set(threading.enumerate())
    sessions = await mount(root, path)
    await whole_call(sessions)
    await root.fiber.kernel.close()
    assert not [thread for thread in set(threading.enumerate()) - before if "session" in thread.name]
    assert [each.name for each in path.parent.iterdir()] == ["sessions.db"]


async def test_a_closed_log_refuses_records(root: Any, path: Path) -> None:
    """No call is served by a host whose log is closed."""
    sessions = await mount(root, path)
    await root.fiber.kernel.close()
    with pytest.raises(LogError, match="closed") as caught:
        await sessions.called(call())
    assert caught.value.code == "LOG_UNAVAILABLE"


async def test_what_was_posted_is_committed_at_the_end(root: Any, path: Path) -> None:
    """Closing drains the queue."""
    await mount(root, path)
    await root.fiber.kernel.close()
    states = [record.payload["state"] for record in records(path, "plugin/state")]
    assert states == ["active", "unloading"]


# Redaction.


async def test_everything_goes_through_the_redactor(root: Any, path: Path) -> None:
    """Label, id, arguments, result: no file of the log holds the secret."""
    await root.plugin(Masker("hunter2")).wait()
    sessions = await mount(root, path)
    await sessions.open_session("one", label="with hunter2", front_door="mcp")
    arguments = {"hunter2": ["hunter2"]}
    await whole_call(sessions, "id-hunter2", result=failure("hunter2 is wrong"), arguments=arguments, agent="one")
    files = b"".join(each.read_bytes() for each in path.parent.iterdir() if each.suffix != ".db-shm")
    assert b"hunter2" not in files
    assert b"***" in files


async def test_a_call_whose_arguments_cannot_be_masked_is_refused(root: Any, path: Path) -> None:
    """Fail closed: the attempt is logged without its arguments, and the call does not run."""

    class Broken(Masker):
        def value(self, value: Any) -> Any:
            if "arguments" in value:
                raise ValueError("no idea")
            return value

    await root.plugin(Broken()).wait()
    sessions = await mount(root, path)
    with pytest.raises(LogError, match="ValueError"):
        await sessions.called(call(arguments={"text": "secret"}))
    [entered] = records(path, "tool/call")
    assert "arguments" not in entered.payload
    assert "ValueError" in entered.payload["withheld"]


async def test_a_restart_goes_on_with_the_open_sessions(root: Any, path: Path) -> None:
    """A redactor that comes late restarts the log; an agent's session stays the same."""
    sessions = await mount(root, path)
    session = await sessions.open_session("one", label="one", front_door="mcp")
    await whole_call(sessions, "before", agent="one")
    await root.plugin(Masker("hunter2")).wait()
    await root.fiber.kernel.settle()
    await whole_call(root.get("sessions"), "after hunter2", arguments={"a": "hunter2"}, agent="one")
    calls = records(path, "tool/call")
    assert {record.session for record in calls} == {session.number}
    assert calls[-1].payload["arguments"] == {"a": "***"}
    await session.close()
    assert session_rows(path)["one"][1:] == (1, "closed")


# A log that breaks.


async def break_log(sessions: Any) -> None:
    """Leave no page to write to, as on a full disk."""
    await sessions._store.run(lambda db: db.execute("PRAGMA max_page_count = 1").fetchone())
    with pytest.raises(LogError):
        for _ in range(100):
            await whole_call(sessions, result=success("x" * 50_000))


async def test_a_full_disk_is_a_clear_error(sessions: Any) -> None:
    """It says what is wrong and what to do."""
    await break_log(sessions)
    assert "the disk is full; free some space" in sessions.broken


async def test_a_broken_log_refuses_every_call(sessions: Any) -> None:
    """After a commit that failed nothing runs, and nothing is answered."""
    run = call()
    await sessions.called(run)
    await break_log(sessions)
    with pytest.raises(LogError) as caught:
        await sessions.called(call())
    assert caught.value.code == "LOG_UNAVAILABLE"
    with pytest.raises(LogError):
        await sessions.finished(run, success(), None)


async def test_a_broken_log_keeps_what_was_answered(sessions: Any, path: Path) -> None:
    """What was committed before stays, and opening again goes on."""
    await whole_call(sessions, "answered")
    await break_log(sessions)
    assert records(path, "tool/call")[0].payload["call_id"] == "answered"
    assert records(path, "tool/result")[0].outcome == "success"


async def test_a_log_that_broke_can_be_opened_again(root: Any, path: Path) -> None:
    """A restart of the plugin serves calls again; those that lost their result are closed."""
    sessions = await mount(root, path)
    await break_log(sessions)
    [fiber] = [fiber for fiber in root.fiber.kernel.fibers if fiber.name == "sessions"]
    fiber.restart()
    await root.fiber.kernel.settle()
    sessions = root.get("sessions")
    await whole_call(sessions, "after")
    codes = [record.code for record in records(path, "tool/result")]
    assert len(codes) == len(records(path, "tool/call"))
    assert codes[-2:] == ["INTERRUPTED", None]


def take_away(path: Path, how: str) -> None:
    """Do to the file what a person, or a tool, may do."""
    path.rename(path.with_name("elsewhere.db"))
    if how == "deleted":
        path.with_name("elsewhere.db").unlink()
    elif how == "replaced":
        path.touch()


@pytest.mark.parametrize("how", ["deleted", "moved", "replaced"])
async def test_a_log_that_is_taken_away_refuses_every_call(sessions: Any, path: Path, how: str) -> None:
    """No call runs whose record nobody could find, though SQLite would go on writing it."""
    await whole_call(sessions, "answered")
    sessions._store._looked = 0.0  # a look holds for a moment
    take_away(path, how)
    with pytest.raises(LogError, match="somebody deleted, moved or replaced it"):
        await sessions.called(call())
    with pytest.raises(LogError) as caught:
        await sessions.called(call())
    assert caught.value.code == "LOG_UNAVAILABLE"


async def test_callers_wait_while_the_queue_is_full(root: Any, path: Path) -> None:
    """The queue is bounded: a caller waits for room, and no record is lost."""
    sessions = await mount(root, path, max_queue_bytes=4_096)
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(whole_call, sessions, f"c{number}", success("x" * 5_000))
    assert len(records(path, "tool/result")) == 50


@pytest.mark.parametrize("settings", [{"sync": "none"}, {"max_event_bytes": 10}, {"keep_days": -1}])
def test_settings_that_make_no_sense_are_refused(settings: Any) -> None:
    """The message names the setting."""
    with pytest.raises(ValueError, match=next(iter(settings))):
        SessionsConfig(**settings)


async def test_full_sync_is_asked_of_sqlite(root: Any, path: Path) -> None:
    """``sync`` is what the connection runs with."""
    sessions = await mount(root, path, sync="full")
    assert await sessions._store.run(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (2,)
