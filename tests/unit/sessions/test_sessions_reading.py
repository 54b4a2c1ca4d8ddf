"""Reading: lists, one call, following, export, pruning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from dsh_hookspecs import ApprovalRequest
from sessions_kit import call, failure, mount, query, records, success, whole_call

from dsh_runtime.services.sessions import LogError
from dsh_runtime.services.sessions.events import ToolCall
from dsh_runtime.services.sessions.follow import Follower
from dsh_runtime.services.sessions.prune import prune_log
from dsh_runtime.services.sessions.reading import CallFilter, Reader


@pytest.fixture
async def filled(sessions: Any) -> Any:
    """Two sessions, four calls."""
    await sessions.open_session("one", label="one", front_door="mcp")
    await whole_call(sessions, "a", name="echo", agent="one")
    await whole_call(sessions, "b", failure("no", "DENIED"), name="grep", agent="one")
    await whole_call(sessions, "c", name="grep")
    await sessions.called(call("d", "sleep"))
    return sessions


async def test_sessions_are_listed_newest_first(filled: Any) -> None:
    """With who, through what, and how many calls."""
    one, host = await filled.read(lambda reader: reader.sessions())
    assert (one.label, one.front_door, one.calls, one.ended) == ("one", "mcp", 2, None)
    assert (host.front_door, host.calls) == ("host", 2)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, "dcba"),
        ({"tool": "grep"}, "cb"),
        ({"outcome": "success"}, "ca"),
        ({"outcome": "open"}, "d"),
        ({"code": "DENIED"}, "b"),
        ({"limit": 2}, "dc"),
        ({"tool": "grep", "outcome": "success"}, "c"),
        ({"since": 2**60}, ""),
    ],
)
async def test_calls_are_listed_through_filters(filled: Any, members: Any, expected: str) -> None:
    """Filters narrow the list together."""
    found = await filled.read(lambda reader: reader.calls(CallFilter(**members)))
    assert "".join(info.call_id for info in found) == expected


async def test_calls_of_one_session_are_listed(filled: Any) -> None:
    """By the session's id."""
    session = filled.session_of("one").id
    found = await filled.read(lambda reader: reader.calls(CallFilter(session=session)))
    assert [info.call_id for info in found] == ["b", "a"]


async def test_a_session_is_found_by_a_beginning_of_its_id(filled: Any) -> None:
    """As few characters as no other session shares; too few are refused."""
    session = filled.session_of("one").id
    assert (await filled.read(lambda reader: reader.session(session))).id == session
    with pytest.raises(LogError, match="several"):
        await filled.read(lambda reader: reader.session("2"))
    with pytest.raises(LogError, match="none"):
        await filled.read(lambda reader: reader.session("x"))


async def test_one_call_comes_with_everything(root: Any, sessions: Any) -> None:
    """Its events and no other's, in order."""
    run = call("asked", "write", {"path": "a.txt"})
    await sessions.called(run)
    await whole_call(sessions, "between")
    root.emit("approval/asked", ApprovalRequest(run, digest=run.digest))
    root.emit("approval/decided", ApprovalRequest(run, digest=run.digest), "allowed-once", None)
    await sessions.finished(run, success(), None)
    record = await sessions.read(lambda reader: reader.call("asked"))
    assert [event.type for event in record.events] == [
        "tool/call",
        "approval/asked",
        "approval/decided",
        "tool/result",
    ]
    assert record.info.outcome == "success"
    assert record.events[0].event == ToolCall(
        call_id="asked", name="write", digest=run.digest, arguments={"path": "a.txt"}
    )


async def test_a_call_without_a_result_is_open(filled: Any) -> None:
    """It is shown with what is known so far."""
    record = await filled.read(lambda reader: reader.call("d"))
    assert (record.info.outcome, len(record.events)) == ("open", 1)


async def test_a_call_that_is_not_there_is_a_clear_error(filled: Any) -> None:
    """Not an empty answer."""
    with pytest.raises(LogError, match="'x'"):
        await filled.read(lambda reader: reader.call("x"))


async def test_events_of_a_session_are_read_across_pages(sessions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every event once, in order."""
    monkeypatch.setattr("dsh_runtime.services.sessions.reading._PAGE", 7)
    session = await sessions.open_session("one", label="one", front_door="mcp")
    for number in range(20):
        await whole_call(sessions, f"c{number}", agent="one")
    found = await sessions.read(lambda reader: list(reader.events(session=session.id)))
    assert [event.seq for event in found] == list(range(1, 42))


async def test_export_gives_one_json_object_a_line(filled: Any, path: Path) -> None:
    """Everything, as it stands in the log."""
    lines = await filled.read(lambda reader: list(reader.export()))
    parsed = [json.loads(line) for line in lines]
    stored = [each for each in parsed if each["type"] != "plugin/state"]
    assert [each["payload"] for each in stored] == [record.payload for record in records(path)]
    assert {"id", "session", "seq", "time", "type", "call", "payload"} == set(parsed[0])


# Following.


async def test_a_follower_is_woken_by_commits_of_its_process(sessions: Any, path: Path) -> None:
    """Without waiting for the next look."""
    got: list[str] = []
    async with Follower(path, store=sessions._store, interval=3_600) as events, trio.open_nursery() as nursery:

        async def listen() -> None:
            async for event in events:
                got.append(event.type)
                if event.type == "tool/result":
                    nursery.cancel_scope.cancel()

        nursery.start_soon(listen)
        await whole_call(sessions)
        await trio.sleep_forever()
    assert got == ["tool/call", "tool/result"]


async def test_a_follower_sees_what_others_commit(sessions: Any, path: Path) -> None:
    """A reader without the writer's store looks at one integer."""
    with trio.fail_after(10):
        async with Follower(path, interval=0.001) as events:
            await whole_call(sessions)
            assert (await anext(events)).type == "tool/call"


async def test_a_follower_reads_no_rows_while_nothing_is_new(sessions: Any, path: Path) -> None:
    """It polls one integer, not the log."""
    async with Follower(path, interval=0.001) as events:
        await events._more()
        reads: list[Any] = []
        events._next_page = lambda: reads.append(1) or []  # type: ignore[method-assign,func-returns-value]
        for _ in range(5):
            await events._more()
        assert reads == []


async def test_a_follower_goes_on_from_where_it_was(filled: Any) -> None:
    """``after`` is the last event that is known."""
    session = filled.session_of("one").id
    async with filled.follow(session=session, after=3) as events:
        assert [(await anext(events)).seq for _ in range(2)] == [4, 5]


# Pruning.


@pytest.fixture
async def aged(root: Any, path: Path) -> Any:
    """Three closed sessions of one call each, begun at 1,000, 2,000 and 3,000, and an open one."""
    now = [1_000]
    sessions = await mount(root, path, clock=lambda: now[0])
    for time in (1_000, 2_000, 3_000):
        now[0] = time
        session = await sessions.open_session(time, label=str(time), front_door="mcp")
        await whole_call(sessions, f"c{time}", success("x" * 20_000), agent=time)
        await session.close()
    await sessions.open_session("open", label="open", front_door="mcp")
    return sessions


def labels(path: Path) -> set[str]:
    return {label for (label,) in query(path, "SELECT label FROM sessions") if not label.startswith("process")}


async def test_old_sessions_are_pruned_with_their_events(aged: Any, path: Path) -> None:
    """By the time of their end; the log tells that it was pruned."""
    pruned = await aged.prune(before=2_500)
    assert (pruned.sessions, pruned.events) == (2, 6)
    assert labels(path) == {"3000", "open", "log prune"}
    assert [record.payload["call_id"] for record in records(path, "tool/call")] == ["c3000"]


async def test_the_oldest_sessions_go_until_the_log_is_small_enough(aged: Any, path: Path) -> None:
    """By size, the oldest first."""
    full = (await aged.prune()).bytes
    pruned = await aged.prune(max_bytes=full - 10_000)
    assert pruned.bytes <= full - 10_000
    assert labels(path) == {"2000", "3000", "open", "log prune"}


async def test_an_open_session_is_never_pruned(aged: Any, path: Path) -> None:
    """However old or large it is."""
    await aged.prune(before=2**60, max_bytes=0)
    assert labels(path) == {"open", "log prune"}


async def test_pruning_nothing_leaves_no_trace(aged: Any, path: Path) -> None:
    """Only what deletes says so."""
    await aged.prune(before=0)
    assert "log prune" not in labels(path)


async def test_ids_go_on_rising_after_pruning(aged: Any, path: Path) -> None:
    """A follower misses nothing because an id came twice."""
    session = await aged.open_session("last", label="last", front_door="mcp")
    await session.close()
    with Reader(path) as reader:
        last = reader.last_id()
        await aged.prune(before=2**60)
        assert reader.last_id() > last


async def test_a_log_that_is_in_use_can_be_pruned_from_outside(aged: Any, path: Path) -> None:
    """Its writer goes on."""
    assert (await trio.to_thread.run_sync(lambda: prune_log(path, before=2_500))).sessions == 2
    await whole_call(aged, "after", agent="open")


async def test_pages_are_given_back_only_of_a_log_that_nobody_writes(root: Any, aged: Any, path: Path) -> None:
    """A writer would have to wait too long."""
    with pytest.raises(LogError, match="a process writes it"):
        await trio.to_thread.run_sync(lambda: prune_log(path, before=2**60, vacuum=True))
    await root.fiber.kernel.close()
    size = query(path, "PRAGMA page_count")
    prune_log(path, before=2**60, vacuum=True)
    assert query(path, "PRAGMA page_count") < size


async def test_retention_is_kept_by_the_service(root: Any, path: Path) -> None:
    """What the config says is too old goes without being asked."""
    sessions = await mount(root, path, clock=lambda: 1_000)
    session = await sessions.open_session("one", label="one", front_door="mcp")
    await session.close()
    await root.fiber.kernel.close()
    from dsh_runtime.core.kernel import open_kernel

    async with open_kernel() as ctx:
        sessions = await mount(ctx, path, clock=lambda: 100 * 86_400_000, keep_days=30)
        async with sessions.follow(after=0) as events:
            while (await anext(events)).event.payload().get("label") != "log prune":
                pass
    assert "one" not in labels(path)
