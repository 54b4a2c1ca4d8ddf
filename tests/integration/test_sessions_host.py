"""The log in a host: every way that a call can go is on record, and a log that breaks stops the calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from dsh_hookspecs import AbortController, Allow, Ask, Block, Deny

from dsh_runtime import ToolExecutionInput, define_tool, open_host
from dsh_runtime.core.lifecycle import State
from dsh_runtime.services.sessions import Sessions, SessionsConfig
from dsh_runtime.services.sessions.reading import CallRecord, Reader

TEXT = {"text": {"type": "string", "required": True}}


class Tools:
    """A tool that echoes, one that raises, one that never ends, one that calls another."""

    name = "some_tools"
    inject = ("tools",)

    def __init__(self) -> None:
        self.ran = 0
        self.hangs = trio.Event()

    def apply(self, ctx: Any) -> None:
        async def echo(args: Any) -> str:
            self.ran += 1
            return str(args["text"])

        async def fail(args: Any) -> str:
            raise ValueError("it does not work")

        async def hang(args: Any) -> str:
            self.hangs.set()
            await trio.sleep_forever()
            raise AssertionError

        async def outer(args: Any, exec: Any) -> str:
            signal, root = exec.signal, exec.root_call_id
            inner = ToolExecutionInput("inner", "echo", args, signal, exec.agent, exec.token, root)
            return str((await ctx.tools.execute(inner)).value)

        for body in (echo, fail, hang, outer):
            name = body.__name__
            ctx.tools.register(
                define_tool(name=name, description=name, parameters=TEXT, output={"type": "string"}, execute=body)
            )


class Policy:
    """A plugin that answers as it is told."""

    name = "policy"

    def __init__(self, event: str, answer: Callable[[], Any]) -> None:
        self.event = event
        self.answer = answer

    def apply(self, ctx: Any) -> None:
        ctx.on(self.event, lambda: self.answer())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "sessions.db"


async def run(ctx: Any, name: str = "echo", **members: Any) -> Any:
    """One call."""
    source = members.pop("signal", AbortController().signal)
    return await ctx.tools.execute(ToolExecutionInput("c1", name, {"text": "hello"}, source, **members))


async def record_of(path: Path, name: str = "echo", *plugins: Any, **members: Any) -> CallRecord:
    """What the log has of one call, in a host with some more plugins."""
    config = SessionsConfig(path=str(path))
    async with open_host(plugins=[Sessions(config), *plugins, Tools()]) as host:
        await run(host.ctx, name, **members)
        record: CallRecord = await host.ctx.get("sessions").read(lambda reader: reader.call("c1"))
        return record


def types(record: CallRecord) -> list[str]:
    return [event.type for event in record.events]


async def test_a_success_is_on_record(path: Path) -> None:
    """With what the model saw."""
    record = await record_of(path)
    assert record.info.outcome == "success"
    assert record.events[-1].payload["content"] == [{"type": "text", "text": "hello"}]


def refuse() -> Any:
    raise RuntimeError("policy is broken")


@pytest.mark.parametrize(
    ("name", "plugins", "code"),
    [
        ("fail", (), None),
        ("nowhere", (), "UNKNOWN_TOOL"),
        ("echo", (Policy("tools/pre-execute", lambda: Deny("no")),), "DENIED"),
        ("echo", (Policy("tools/pre-execute", lambda: Ask()),), "APPROVAL_UNAVAILABLE"),
        ("echo", (Policy("tools/pre-execute", refuse),), "LISTENER_FAILED"),
        ("echo", (Policy("tools/post-execute", lambda: Block("no")),), "BLOCKED"),
    ],
)
async def test_every_failure_is_on_record(path: Path, name: str, plugins: Any, code: str | None) -> None:
    """Whoever said no, one call has one result."""
    record = await record_of(path, name, *plugins)
    assert (record.info.outcome, record.info.code) == ("failure", code)
    assert types(record) == ["tool/call", "tool/result"]


async def test_a_question_and_its_answer_are_on_record(path: Path) -> None:
    """Between the call and its result, with the channel that answered."""
    ask = Policy("tools/pre-execute", lambda: Ask("it writes"))
    channel = Policy("approval/request", lambda: "allowed-once")
    channel.name = "channel"
    record = await record_of(path, "echo", ask, channel, agent="someone")
    assert types(record) == ["tool/call", "approval/asked", "approval/decided", "tool/result"]
    assert record.events[2].payload["channel"] == "channel"


async def test_a_nested_call_is_on_record_below_its_parent(path: Path) -> None:
    """With the ids of the outer one."""
    await record_of(path, "outer")
    with Reader(path) as reader:
        inner = reader.call("inner")
    assert inner.events[0].payload["parent"] == inner.events[0].payload["root"] == "c1"


async def test_a_cancelled_call_is_on_record(path: Path) -> None:
    """The caller is gone, the record is not."""
    tools = Tools()
    async with (
        open_host(plugins=[Sessions(SessionsConfig(path=str(path))), tools]) as host,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(run, host.ctx, "hang")
        await tools.hangs.wait()
        nursery.cancel_scope.cancel()
    with Reader(path) as reader:
        assert reader.call("c1").info.code == "ABORTED"


async def test_policy_sees_a_call_only_when_it_is_on_record(path: Path) -> None:
    """A policy that looks into the log finds the call there."""
    seen: list[str] = []

    def look() -> Any:
        with Reader(path) as reader:
            seen.append(reader.call("c1").info.outcome)
        return Allow()

    await record_of(path, "echo", Policy("tools/pre-execute", look))
    assert seen == ["open"]


async def test_a_broken_log_lets_no_call_through(path: Path) -> None:
    """The body does not run, and the failure says why."""
    tools = Tools()
    async with open_host(plugins=[Sessions(SessionsConfig(path=str(path))), tools]) as host:
        await host.ctx.get("sessions")._store.run(lambda db: db.execute("PRAGMA query_only = 1"))
        results = [await run(host.ctx) for _ in range(3)]
    assert tools.ran == 0
    assert {result.error.info.code for result in results} == {"LOG_UNAVAILABLE"}
    assert "session log" in results[0].error.message


@pytest.mark.parametrize("crash", [False, True], ids=["unloads", "has crashed"])
async def test_no_call_inside_another_runs_off_the_record_when_the_log_goes(path: Path, crash: bool) -> None:
    """It is on record while the log can still write, and refused where it cannot."""
    ran: list[str] = []
    begun, go_on = trio.Event(), trio.Event()
    async with open_host({"host": {"log": {"path": str(path)}}}) as host:
        ctx = host.ctx
        log = next(fiber for fiber in ctx.fiber.kernel.fibers if fiber.id == "session-log")

        async def outer(args: Any, exec: Any) -> str:
            begun.set()
            await go_on.wait()
            inner = ToolExecutionInput("inner", "inner", {}, exec.signal, exec.agent, exec.token, exec.root_call_id)
            result = await ctx.tools.execute(inner)
            return str(result.error.info.code if result.is_error else result.value)

        async def inner(args: Any) -> str:
            ran.append("inner")
            return "done"

        for body in (outer, inner):
            ctx.tools.register(
                define_tool(name=body.__name__, description="", parameters={}, output={"type": "string"}, execute=body)
            )
        told: list[Any] = []

        async def call() -> None:
            told.append(await run(ctx, "outer", agent=ctx.scope().key))

        async def unload() -> None:
            await log.dispose()

        async def break_down() -> None:
            raise RuntimeError("the log is broken")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await begun.wait()
            if crash:
                log.ctx.start_soon(break_down)
            else:
                nursery.start_soon(unload)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert log.state is not State.ACTIVE
            go_on.set()
    with Reader(path) as reader:
        recorded = [event.payload["call_id"] for event in reader.events() if event.type == "tool/call"]
    assert recorded == ["c1", *ran]


async def test_a_hundred_megabytes_pass_and_are_cut_in_the_log(path: Path) -> None:
    """The caller gets all of it; the log keeps its beginning and says how large it was."""

    class Giant(Tools):
        name = "giant"

        def apply(self, ctx: Any) -> None:
            output = {"type": "string"}

            async def giant(args: Any) -> str:
                return "x" * 100_000_000

            ctx.tools.register(
                define_tool(name="giant", description="giant", parameters=TEXT, output=output, execute=giant)
            )

    record = await record_of(path, "giant", Giant())
    assert record.events[-1].payload["cut"] > 100_000_000
    assert len(record.events[-1].text) <= 1_048_576
