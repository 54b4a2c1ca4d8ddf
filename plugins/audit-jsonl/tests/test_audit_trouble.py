"""What happens when records cannot be written: nothing runs unaudited, and nothing is lost in silence."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import dsh_plugin_audit_jsonl
import pytest
import trio
import trio.testing
from attrs import field, frozen
from audit_kit import Host, audited, code, moved, records, until
from dsh_hookspecs import Allow, Deny, ExecutionToken, PreToolDecision, ToolExecution
from dsh_plugin_audit_jsonl._writer import Writer
from trio.testing import MockClock

from dsh_runtime import HostError, open_host

pytestmark = pytest.mark.trio
Next = Callable[[], Awaitable[PreToolDecision]]


@frozen
class DryRun:
    """A call that policy is only asked about."""

    name: str = "work"
    call_id: str = "dry"
    dry_run: bool = True
    token: ExecutionToken = field(factory=ExecutionToken)


@asynccontextmanager
async def trouble(host: Host, clock: MockClock) -> AsyncIterator[None]:
    """Let the log fail under a call, and end the trouble afterwards."""
    await host.call("before")
    await host.written(1)
    host.path.rename(moved(host.path))
    host.path.mkdir()
    try:
        await host.call("unlucky")
        while not await refuses(host):
            await trio.to_thread.run_sync(bool)
        yield
    finally:
        host.path.rmdir()
        while await refuses(host):
            clock.jump(10)  # more than once: the plugin may be writing just now, and only then begin to wait
            await trio.to_thread.run_sync(bool)


async def refuses(host: Host) -> bool:
    """Whether the plugin would refuse a call just now."""
    answer = await host.ctx.waterfall("tools/pre-execute", DryRun(), default=Allow())
    return isinstance(answer, Deny) and "unaudited" in answer.reason


async def has_room(host: Host) -> None:
    """Wait until the plugin lets calls through."""
    while await refuses(host):
        await trio.to_thread.run_sync(bool)


async def pass_time(clock: MockClock, seconds: float) -> None:
    clock.jump(seconds)
    await trio.testing.wait_all_tasks_blocked()


async def test_while_the_file_cannot_be_written_no_call_runs(log: Path, mock_clock: MockClock) -> None:
    async with audited(log) as host:
        async with trouble(host, mock_clock):
            result = await host.call("late")
        assert code(result) == "DENIED"
        assert result.error.info.plugin == "audit"
        assert result.error.message == (
            f"No call may run unaudited: {log} cannot be written (Is a directory). Try again later."
        )
        assert host.ran == ["before", "unlucky"]


async def test_after_the_trouble_no_record_is_missing_and_calls_run(log: Path, mock_clock: MockClock) -> None:
    async with audited(log) as host:
        async with trouble(host, mock_clock):
            await host.call("late")
        await host.written(3)
        assert not (await host.call("after")).is_error
    assert [(record["call"], record["outcome"]) for record in records(log)] == [
        ("before", "success"),
        ("unlucky", "success"),
        ("late", "denied"),
        ("after", "success"),
    ]


async def test_a_write_is_tried_again_for_as_long_as_it_fails(log: Path, mock_clock: MockClock) -> None:
    async with audited(log) as host:
        async with trouble(host, mock_clock):
            for _ in range(20):
                await pass_time(mock_clock, 6)
                assert code(await host.call("late")) == "DENIED"
        assert len(await host.written(22)) == 22


async def test_trouble_and_its_end_are_reported_once_each(
    log: Path, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == "dsh.plugin.audit"]

    async with audited(log) as host:
        async with trouble(host, mock_clock):
            for _ in range(5):
                await pass_time(mock_clock, 6)
        await until(lambda: len(told()) > 1)
    assert [record.levelno for record in told()] == [logging.ERROR, logging.WARNING]
    assert "Is a directory" in told()[0].getMessage()


class Overruler:
    """A policy that makes an allow of whatever the others say."""

    name = "overruler"

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/pre-execute", self.overrule, prepend=True)

    async def overrule(self, next: Next) -> PreToolDecision:
        await next()
        return Allow()


async def test_no_policy_can_overrule_the_refusal(log: Path, mock_clock: MockClock) -> None:
    audit = (dsh_plugin_audit_jsonl, {"path": str(log), "capacity": 1})
    async with open_host(plugins=[Overruler(), audit]) as runtime, trio.open_nursery() as nursery:
        host, release = Host(runtime, log), trio.Event()

        async def hold(args: Any, exec: Any) -> str:
            await release.wait()
            return "done"

        host.add("hold", hold)
        nursery.start_soon(host.call, "c1", "hold")
        await trio.testing.wait_all_tasks_blocked()
        result = await host.call("late")
        assert (code(result), host.ran) == ("GUARDED", [])
        release.set()


async def test_a_call_that_was_admitted_before_the_trouble_does_not_begin_in_it(
    log: Path, mock_clock: MockClock
) -> None:
    async with audited(log) as host, AsyncExitStack() as stack:

        async def slow(exec: ToolExecution, next: Next) -> PreToolDecision:
            if exec.call_id == "slow":
                await stack.enter_async_context(trouble(host, mock_clock))
            return await next()

        host.ctx.on("tools/pre-execute", slow)
        assert code(await host.call("slow")) == "GUARDED"


async def test_calls_under_way_and_records_that_wait_are_bounded_by_the_capacity(log: Path) -> None:
    async with audited(log, capacity=2) as host, trio.open_nursery() as nursery:
        release, began = trio.Event(), []

        async def hold(args: Any, exec: Any) -> str:
            began.append(exec.call_id)
            await release.wait()
            return "done"

        host.add("hold", hold)
        nursery.start_soon(host.call, "c1", "hold")
        nursery.start_soon(host.call, "c2", "hold")
        await until(lambda: len(began) == 2)
        result = await host.call("c3")
        assert code(result) == "DENIED"
        assert "2 calls are under way or wait for their records" in result.error.message
        release.set()
        await has_room(host)
        assert not (await host.call("c4")).is_error


async def test_a_place_is_given_back_by_a_call_that_is_denied_later(log: Path) -> None:
    async with audited(log, capacity=1) as host:
        undo = host.ctx.on("tools/pre-execute", lambda: Deny("no"))
        for number in range(5):
            assert (await host.call(f"c{number}")).error.message == "no"
            await has_room(host)
        undo()
        assert not (await host.call("last")).is_error


async def test_refused_calls_without_room_for_a_record_are_counted_in_their_place(
    log: Path, mock_clock: MockClock
) -> None:
    async with audited(log, capacity=4) as host:
        async with trouble(host, mock_clock):
            for number in range(20):
                assert (await host.call(f"late{number}")).is_error
        found = await host.written(10)
        assert not (await host.call("after")).is_error
    assert [record.get("call") for record in found] == ["before", "unlucky", *[f"late{n}" for n in range(7)], None]
    gap = found[-1]
    assert (gap["outcome"], gap["records_without_room"]) == ("denied", 13)


async def test_a_dry_run_is_told_the_same_and_takes_no_place(log: Path) -> None:
    async with audited(log, capacity=1) as host:
        for _ in range(3):
            call = DryRun()
            assert await host.ctx.waterfall("tools/pre-execute", call, default=Allow()) == Allow()
        assert not (await host.call()).is_error
    assert len(records(log)) == 1


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> list[Writer]:
    """The writers that have begun."""
    begun: list[Writer] = []
    whole = Writer.open

    async def noting(writer: Writer) -> None:
        begun.append(writer)
        await whole(writer)

    monkeypatch.setattr(Writer, "open", noting)
    return begun


async def test_what_cannot_be_written_at_unload_goes_to_the_hosts_log(
    log: Path, mock_clock: MockClock, caplog: pytest.LogCaptureFixture, writers: list[Writer]
) -> None:
    async with audited(log) as host:
        assert host.fiber is not None
        async with trouble(host, mock_clock):
            host.fiber.dispose()
            while host.fiber.state != "disposed":
                await pass_time(mock_clock, 1)
                while writers[0]._limiter.borrowed_tokens:  # A thread takes real time: none passes meanwhile.
                    await trio.to_thread.run_sync(bool)
    told = [record.getMessage() for record in caplog.records if record.name == "dsh.plugin.audit"]
    assert [message for message in told if '"call":"unlucky"' in message] != []


async def test_a_log_that_cannot_be_opened_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        async with audited(tmp_path / "no" / "audit.jsonl"):
            pass  # pragma: no cover
    assert "cannot be opened: No such file or directory; give a 'path' in a folder that exists" in str(caught.value)


@pytest.fixture
def link(log: Path) -> Path:
    log.symlink_to(log.with_name("elsewhere"))
    return log


async def test_a_symbolic_link_is_refused(link: Path) -> None:
    with pytest.raises(HostError, match="It is a symbolic link"):
        async with audited(link):
            pass  # pragma: no cover


@pytest.mark.parametrize(
    "mistake", [{"max_bytes": 0}, {"keep": 0}, {"capacity": 0}, {"max_argument_bytes": -1}, {"pth": "x"}]
)
async def test_a_config_with_a_mistake_stops_the_start_and_is_named(log: Path, mistake: dict[str, Any]) -> None:
    with pytest.raises(HostError) as caught:
        async with audited(log, **mistake):
            pass  # pragma: no cover
    assert next(iter(mistake)) in str(caught.value)
