"""Contract 7.4: the record of a program's sub-calls, and the waterfall that may reshape it."""

# ruff: noqa: A006 - listeners and bodies take their arguments by these names

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from code_kit import programs
from pipeline_kit import Clockwork, Recorder, failure, success, text

from dsh_runtime import Deny
from dsh_runtime.services.sessions.reading import Reader

EVENT = "tools/code-dispatch-log"


class Record:
    """The log of one test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def events(self, *types: str) -> list[Any]:
        with Reader(self.path) as reader:
            return [event for event in reader.events() if event.type in types]

    def dispatches(self) -> list[dict[str, Any]]:
        return [dict(event.payload) for event in self.events("tool/code-dispatch")]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """A log of the test's own."""
    return Record(tmp_path / "log.db")


def logged(record: Record, **names: Any) -> Any:
    return programs(log=record.path, **names)


async def test_each_sub_call_is_framed_in_the_log(record: Record) -> None:
    async with logged(record) as run:
        Recorder(run.ctx).tool("echo")
        await run.result("await tools.echo({'n': 1})", call_id="run")
    types = ["tool/call", "tool/code-dispatch-start", "tool/result", "tool/code-dispatch"]
    events = record.events(*types)
    assert [event.type for event in events] == [
        "tool/call",
        "tool/code-dispatch-start",
        "tool/call",
        "tool/result",
        "tool/code-dispatch",
        "tool/result",
    ]
    outer, start, inner, _, end, _ = events
    assert start.payload == {"sub_call_id": "run:code:1", "name": "echo"}
    assert end.payload == {"sub_call_id": "run:code:1", "name": "echo", "is_error": False, "content": text("ran:echo")}
    assert start.call == end.call == outer.seq
    assert (inner.payload["call_id"], inner.payload["parent"], inner.payload["root"]) == ("run:code:1", "run", "run")


async def test_a_denied_sub_call_is_framed_too(record: Record) -> None:
    async with logged(record) as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.pre("P", lambda exec, next: Deny("no") if exec.name == "echo" else next())
        failure(await run.run("await tools.echo()"), "CODE_RUN_FAILED")
    (end,) = record.dispatches()
    assert (end["is_error"], end["content"]) == (True, text("Error: no"))


async def test_a_sub_call_that_is_given_up_or_aborted_has_one_end(record: Record) -> None:
    async def endless(args: Any, exec: Any) -> str:
        await trio.sleep_forever()
        return ""

    async with logged(record) as run:
        rec = Recorder(run.ctx)
        rec.tool("endless", endless)
        await run.result(
            """
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(tools.endless)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
            start(tools.endless())
            await trio.testing.wait_all_tasks_blocked()
            """
        )
    starts = [event.payload["sub_call_id"] for event in record.events("tool/code-dispatch-start")]
    ends = record.dispatches()
    assert starts == [end["sub_call_id"] for end in ends] == ["run1:code:1", "run1:code:2"]
    assert [end["is_error"] for end in ends] == [True, True]


async def test_a_listener_reshapes_the_logged_copy_alone(record: Record) -> None:
    seen: list[Any] = []

    async def shorten(dispatch: Any, next: Any) -> Any:
        seen.append((dispatch, await next()))
        return text("short")

    async with logged(record) as run:
        rec = Recorder(run.ctx)
        rec.tool("echo", lambda args, exec: "long")
        rec.observe("R")
        run.ctx.on(EVENT, shorten)
        agent = run.ctx.scope()
        result = await run.run("return await tools.echo()", call_id="run", agent=agent.key)
    assert success(result).value["result"] == "long"
    (end,) = record.dispatches()
    assert end["content"] == text("short")
    ((dispatch, content),) = seen
    assert (dispatch.exec.call_id, dispatch.agent, dispatch.sub_call_id) == ("run", agent.key, "run:code:1")
    assert (dispatch.name, dispatch.is_error, dispatch.content, content) == ("echo", False, text("long"), text("long"))
    assert rec.results[0].content == text("long")  # what the pipeline has of it


async def test_a_sub_call_that_is_given_up_while_a_listener_looks_at_it_has_one_end(record: Record) -> None:
    looking = Clockwork()

    async def slow(dispatch: Any, next: Any) -> Any:
        await looking.stop()
        return await next()

    async with logged(record, looking=looking) as run:
        Recorder(run.ctx).tool("echo")
        run.ctx.on(EVENT, slow)
        await run.result(
            """
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tools.echo)
                await looking.reached.wait()
                nursery.cancel_scope.cancel()
            await trio.lowlevel.checkpoint()
            looking.go.set()
            """
        )
    (end,) = record.dispatches()
    assert end["content"] == text("ran:echo")


async def hanging(dispatch: Any, next: Any) -> Any:
    await trio.sleep_forever()


async def without_answer(dispatch: Any, next: Any) -> Any:
    await next()


@pytest.mark.parametrize(
    "listener",
    [
        lambda dispatch, next: 1 / 0,
        lambda dispatch, next: "no list",
        lambda dispatch, next: [{"no": "type"}],
        lambda dispatch, next: [{"type": "text", "text": "\ud800"}],
        lambda dispatch, next: [{"type": "text", "text": object()}],
        without_answer,
        hanging,
    ],
    ids=["raises", "no list", "no block", "no unicode", "no JSON", "no answer", "hangs"],
)
async def test_a_listener_that_fails_leaves_the_original(
    record: Record, listener: Any, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with logged(record) as run:
        Recorder(run.ctx).tool("echo")
        run.ctx.on(EVENT, listener)
        assert await run.result("return await tools.echo()") == "ran:echo"
    (end,) = record.dispatches()
    assert end["content"] == text("ran:echo")
    assert EVENT in caplog.text


async def test_a_scopes_listener_hears_its_own_programs_alone(record: Record) -> None:
    heard: list[str] = []
    async with logged(record) as run:
        Recorder(run.ctx).tool("echo")
        one, other = run.ctx.scope(), run.ctx.scope()
        one.ctx.on(EVENT, lambda dispatch, next: heard.append(dispatch.sub_call_id) or next())
        await run.result("await tools.echo()", call_id="a", agent=one.key)
        await run.result("await tools.echo()", call_id="b", agent=other.key)
        await run.result("await tools.echo()", call_id="c")
    assert heard == ["a:code:1"]


async def test_listeners_hear_of_sub_calls_on_a_host_without_a_log() -> None:
    heard: list[str] = []
    async with programs() as run:
        Recorder(run.ctx).tool("echo")
        run.ctx.on(EVENT, lambda dispatch, next: heard.append(dispatch.sub_call_id) or next())
        await run.result("await tools.echo()", call_id="a")
    assert heard == ["a:code:1"]


async def test_a_log_that_takes_no_more_refuses_sub_calls(record: Record) -> None:
    """The outer call is on record already; nothing that is not on record happens inside it."""
    async with logged(record) as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        sessions = run.ctx.get("sessions")
        run.runtime.names["break_log"] = lambda: sessions._store._break(OSError("disk full"))
        result = await run.run("break_log()\nawait tools.echo()")
    failure(result, "LOG_UNAVAILABLE")
    assert not rec.body_ran
