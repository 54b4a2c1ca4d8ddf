"""The journal: what stands in the file when its methods return."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from dsh_hookspecs import ApprovalRequest, CodeDispatchLog
from sessions_kit import call, failure, mount, records, success, whole_call


async def test_a_call_is_committed_when_called_returns(sessions: Any, path: Path) -> None:
    """No policy runs before the log has the call."""
    run = call("c1", "echo", {"text": "hello"})
    await sessions.called(run)
    [record] = records(path, "tool/call")
    assert record.payload == {
        "call_id": "c1",
        "name": "echo",
        "digest": run.digest,
        "arguments": {"text": "hello"},
    }


async def test_a_result_is_committed_when_finished_returns(sessions: Any, path: Path) -> None:
    """A reply is sent only when the log has it."""
    run = call()
    await sessions.called(run)
    await sessions.finished(run, success("done", meta={"lines": 3}), [{"stage": "tools/pre-execute"}])
    [record] = records(path, "tool/result")
    assert record.outcome == "success"
    assert record.payload.pop("ms") >= 0
    assert record.payload == {
        "outcome": "success",
        "content": [{"type": "text", "text": "done"}],
        "meta": {"lines": 3},
        "story": [{"stage": "tools/pre-execute"}],
    }


async def test_the_canonical_value_is_never_logged(sessions: Any, path: Path) -> None:
    """The value is for programs; it may be large and is not what the model saw."""
    await whole_call(sessions, result=success(value="the canonical value"))
    assert b"the canonical value" not in path.with_name("sessions.db-wal").read_bytes()


async def test_a_failure_is_logged_with_its_code_and_plugin(sessions: Any, path: Path) -> None:
    """What went wrong can be looked up by code."""
    await whole_call(sessions, result=failure("not today", "DENIED", "gate"))
    [record] = records(path, "tool/result")
    assert (record.outcome, record.code) == ("failure", "DENIED")
    assert record.payload["error"] == {
        "name": "ToolDenied",
        "code": "DENIED",
        "plugin": "gate",
        "message": "not today",
    }


async def test_a_result_belongs_to_its_call_though_ids_repeat(sessions: Any, path: Path) -> None:
    """Call ids are labels; two calls of one id at the same time keep their results apart."""
    first, second = call("same"), call("same")
    await sessions.called(first)
    await sessions.called(second)
    await sessions.finished(second, success("second"), None)
    await sessions.finished(first, success("first"), None)
    calls = [record.seq for record in records(path, "tool/call")]
    texts = {record.call: record.payload["content"][0]["text"] for record in records(path, "tool/result")}
    assert texts == {calls[0]: "first", calls[1]: "second"}


async def test_a_call_refused_at_the_entry_is_logged_with_its_result(sessions: Any, path: Path) -> None:
    """A call that never came to ``called`` (a closed gate) still has both records."""
    await sessions.finished(call(), failure("the gate is closed", "GATE_CLOSED", None), None)
    [entered] = records(path, "tool/call")
    [result] = records(path, "tool/result")
    assert result.call == entered.seq


async def test_a_dry_run_leaves_no_record(sessions: Any, path: Path) -> None:
    """Asking policy what it would say is no call."""
    run = call(dry_run=True)
    await sessions.called(run)
    await sessions.finished(run, success(), None)
    assert [record.type for record in records(path)] == ["session/started"]


async def test_a_nested_call_names_its_parent_and_root(sessions: Any, path: Path) -> None:
    """The tree of calls can be read from the log."""
    outer = call("outer")
    await sessions.called(outer)
    await whole_call(sessions, "inner", parent=outer.token, root="outer")
    inner = records(path, "tool/call")[1]
    assert (inner.payload["parent"], inner.payload["root"]) == ("outer", "outer")


async def test_approval_is_logged_with_digest_outcome_and_channel(root: Any, sessions: Any, path: Path) -> None:
    """Who was asked about what, and what came of it."""
    run = call()
    await sessions.called(run)
    request = ApprovalRequest(run, "writes a file", digest=run.digest, deadline=30.0)
    root.emit("approval/asked", request)
    root.emit("approval/decided", request, "allowed-once", "terminal")
    await sessions.finished(run, success(), None)
    [asked], [decided] = records(path, "approval/asked"), records(path, "approval/decided")
    assert asked.payload == {"digest": run.digest, "deadline": 30.0, "reason": "writes a file"}
    assert decided.payload == {"digest": run.digest, "outcome": "allowed-once", "channel": "terminal"}
    assert asked.call == decided.call == records(path, "tool/call")[0].seq


async def test_the_calls_of_a_program_are_framed(sessions: Any, path: Path) -> None:
    """A sub-call's start and end stand in the log as events of the outer call."""
    run = call("run", "run_code")
    await sessions.called(run)
    sessions.code_dispatch_start(run, "run:code:1", "echo")
    content = [{"type": "text", "text": "hello"}]
    await sessions.code_dispatch(CodeDispatchLog(run, None, "run:code:1", "echo", False, content))
    await sessions.finished(run, success(), None)
    start, end = records(path)[-3:-1]
    assert start.payload == {"sub_call_id": "run:code:1", "name": "echo"}
    assert end.payload == {"sub_call_id": "run:code:1", "name": "echo", "is_error": False, "content": content}


async def test_the_frame_of_a_sub_call_costs_no_commit_of_its_own(sessions: Any, path: Path) -> None:
    """It is committed with what comes next, in order, and at the end in any case."""
    run, inner = call("run", "run_code"), call("run:code:1")
    await sessions.called(run)
    commits = sessions._store.commits
    sessions.code_dispatch_start(run, "run:code:1", "echo")
    await sessions.called(inner)
    await sessions.finished(inner, success(), None)
    await sessions.code_dispatch(CodeDispatchLog(run, None, "run:code:1", "echo", False, []))
    await sessions.finished(run, success(), None)
    assert sessions._store.commits == commits + 3
    types = [event.type for event in records(path)][-6:]
    assert types == [
        "tool/call", "tool/code-dispatch-start", "tool/call", "tool/result", "tool/code-dispatch", "tool/result"
    ]  # fmt: skip
    last = call("last", "run_code")
    await sessions.called(last)
    sessions.code_dispatch_start(last, "last:code:1", "echo")
    await sessions._store.close()
    assert records(path)[-1].payload["sub_call_id"] == "last:code:1"


async def test_plugin_states_are_logged_in_order(root: Any, sessions: Any, path: Path) -> None:
    """What was loaded when can be read from the log."""

    class Plugin:
        name = "greet"

        def apply(self, ctx: Any) -> None: ...

    await root.plugin(Plugin()).wait()
    await whole_call(sessions)  # What was posted before is committed with it.
    states = [record.payload["state"] for record in records(path, "plugin/state") if record.payload["name"] == "greet"]
    assert states == ["loading", "active"]


async def test_order_holds_when_the_clock_jumps_back(root: Any, path: Path) -> None:
    """The sequence orders a session, whatever the clock does."""
    times = iter(range(1_000_000, 0, -1_000))
    sessions = await mount(root, path, clock=lambda: next(times))
    for number in range(3):
        await whole_call(sessions, f"c{number}")
    found = records(path)
    assert [record.seq for record in found] == sorted(record.seq for record in found)
    assert [record.payload["call_id"] for record in found if record.type == "tool/call"] == ["c0", "c1", "c2"]


async def test_a_cancelled_caller_loses_no_record(sessions: Any, path: Path) -> None:
    """What was begun is written: a cancellation does not call a record back."""
    run = call()
    with trio.CancelScope() as scope:
        scope.cancel()
        await sessions.called(run)
        await sessions.finished(run, failure("aborted", "ABORTED"), None)
    assert [record.code for record in records(path, "tool/result")] == ["ABORTED"]


async def test_many_callers_at_once_lose_nothing(sessions: Any, path: Path) -> None:
    """Groups of every size hold each record once."""
    async with trio.open_nursery() as nursery:
        for number in range(300):
            nursery.start_soon(whole_call, sessions, f"c{number}")
    calls = {record.seq for record in records(path, "tool/call")}
    results = [record.call for record in records(path, "tool/result")]
    assert len(results) == 300
    assert set(results) == calls


@pytest.mark.parametrize("text", ["\ud800 lone", "nul \0 nul", "ünïcode ☃", "x" * 5_000])
async def test_odd_names_and_ids_are_kept(sessions: Any, path: Path, text: str) -> None:
    """Whatever a caller sends as an id can be logged."""
    await whole_call(sessions, text, name=text)
    assert records(path, "tool/call")[0].payload["name"] == text
