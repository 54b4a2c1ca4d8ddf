"""A log for which nobody waits (``sync = "off"``): nothing is lost that the process lives to write."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import trio
from sessions_kit import Masker, Record, call, failure, mount, records, success, whole_call

from dsh_runtime.services.sessions import LogError, Sessions, SessionsConfig


@pytest.fixture
async def lazy(root: Any, path: Path) -> Any:
    """The service, on the bare kernel."""
    return await mount(root, path, sync="off")


async def mounted(root: Any, path: Path, sync: Any) -> tuple[Any, Any]:
    """The fiber of the service, and the service."""
    fiber = root.plugin(Sessions(SessionsConfig(path=str(path), sync=sync)))
    await fiber.wait()
    return fiber, root.get("sessions")


async def written(sessions: Any) -> None:
    """Wait until everything that was handed over is in the file."""
    await sessions._store.run(lambda db: None)


def without_times(record: Record) -> tuple[Any, ...]:
    return record.seq, record.type, record.call, record.outcome, record.code, {**record.payload, "ms": 0, "pid": 0}


async def some_calls(sessions: Any) -> None:
    """Successes, failures, nested calls, one that was refused at the entry, and what is large."""
    outer = call("outer", arguments={"text": "hunter2", "n": [1, None, {"ü": "☃"}]})
    await sessions.called(outer, plugin="tools")
    await whole_call(sessions, "inner", parent=outer.token, root="outer")
    await whole_call(sessions, "large", success("x" * 100_000, meta={"a": "b"}), arguments={"text": "y" * 100_000})
    await sessions.finished(outer, failure("hunter2 is not allowed"), [{"stage": "guard", "detail": "hunter2"}])
    await sessions.finished(call("late"), failure("the gate is closed", "GATE_CLOSED", None), None)


async def test_what_stands_in_the_log_is_what_stands_in_any_other(root: Any, tmp_path: Path) -> None:
    """The same records in the same order, masked, whoever waits for them."""
    await root.plugin(Masker()).wait()
    found = []
    for sync in ("normal", "off"):
        path = tmp_path / sync / "log.db"
        fiber, sessions = await mounted(root, path, sync)
        await some_calls(sessions)
        await fiber.dispose()
        found.append([without_times(record) for record in records(path)][1:])
        assert b"hunter2" not in path.read_bytes()
    assert found[0] == found[1]
    assert len(found[0]) == 8


async def test_closing_writes_what_was_handed_over(root: Any, path: Path) -> None:
    """An orderly end loses nothing."""
    fiber, sessions = await mounted(root, path, "off")
    for number in range(500):
        await whole_call(sessions, f"c{number}")
    await fiber.dispose()
    assert len(records(path, "tool/result")) == 500


async def test_a_call_is_handed_over_when_called_returns(lazy: Any) -> None:
    """Whatever comes to the log afterwards stands behind it."""
    await lazy.called(call())
    count = "SELECT count(*) FROM events WHERE type = 'tool/call'"
    assert await lazy._store.run(lambda db: db.execute(count).fetchone()) == (1,)


async def test_nobody_waits_for_a_commit(lazy: Any) -> None:
    """A writer that is held up holds up no call."""
    go_on = threading.Event()
    lazy._store.post_step(lambda db: go_on.wait(10))
    with trio.fail_after(5):
        await whole_call(lazy)
    go_on.set()


async def test_the_queue_is_bounded(root: Any, path: Path) -> None:
    """Callers wait for room while the writer lags behind, and lose nothing."""
    sessions = await mount(root, path, sync="off", max_queue_bytes=1_000_000)
    go_on, done = threading.Event(), []
    sessions._store.post_step(lambda db: go_on.wait(10))

    async def caller(number: int) -> None:
        await whole_call(sessions, f"c{number}")
        done.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(caller, number)
        await trio.testing.wait_all_tasks_blocked()
        assert len(done) < 50
        go_on.set()
    await written(sessions)
    assert len(records(path, "tool/result")) == 100


async def test_a_log_that_breaks_refuses_the_calls_that_follow(lazy: Any) -> None:
    """It fails closed as soon as it knows."""

    def fail(db: Any) -> None:
        raise OSError("the disk is gone")

    await lazy.called(run := call("c1"))
    with pytest.raises(LogError):
        await lazy._store.run(fail)
    with pytest.raises(LogError, match="the disk is gone"):
        await lazy.finished(run, success(), None)
    with pytest.raises(LogError, match="the disk is gone"):
        await lazy.called(call("c2"))
    assert lazy._journal._calls == {}


@pytest.mark.parametrize("size", [10, 100_000])
async def test_what_the_redactor_fails_on_is_withheld(root: Any, path: Path, size: int) -> None:
    """Nothing is written as it is; what is large enough to be waited for is refused, too."""

    class Broken(Masker):
        def value(self, value: Any) -> Any:
            raise ValueError("hunter2")

    await root.plugin(Broken()).wait()
    sessions = await mount(root, path, sync="off")
    run = call(arguments={"text": "hunter2" * size})
    if size > 10:
        with pytest.raises(LogError):
            await sessions.called(run)
    else:
        await sessions.called(run)
    await sessions.finished(run, success("hunter2"), None)
    await written(sessions)
    assert "hunter2" not in str(records(path))
    assert all("withheld" in record.payload for record in records(path)[1:])


async def test_a_session_ends_behind_its_last_result(root: Any, path: Path) -> None:
    """Closing a session does not cut off what is still on its way."""
    sessions = await mount(root, path, sync="off")
    key = root.scope().key
    session = await sessions.open_session(key, label="a test", front_door="test")
    run = call(agent=key)
    await sessions.called(run)
    await session.close()
    await sessions.finished(run, success(), None)
    ended = await sessions._store.run(
        lambda db: db.execute("SELECT ending FROM sessions WHERE label = 'a test'").fetchone()
    )
    assert ended == ("closed",)
