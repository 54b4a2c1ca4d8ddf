"""What the audit log holds of a call: one record, whatever became of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from audit_kit import audited, code, records, text_of
from dsh_hookspecs import (
    AbortController,
    Allow,
    Ask,
    Block,
    Deny,
    PreToolDecision,
    ToolExecution,
    ToolExecutionResult,
)
from trio.testing import MockClock

from dsh_runtime import HarnessError, ScopeKey

pytestmark = pytest.mark.trio
Next = Callable[[], Awaitable[PreToolDecision]]


async def test_a_call_leaves_a_record_with_all_its_fields(log: Path, mock_clock: MockClock) -> None:
    seen: list[str] = []

    async def execute(args: Any, exec: Any) -> str:
        seen.append(exec.digest)
        mock_clock.jump(1.25)
        return "grüße"

    async with audited(log) as host:
        host.add("greet", execute)
        before = datetime.now(UTC)
        await host.call("c7", "greet", agent="ada")
        [record] = await host.written(1)
    time = datetime.fromisoformat(record.pop("time"))
    assert before <= time <= datetime.now(UTC)
    assert record == {
        "v": 1,
        "call": "c7",
        "root": "c7",
        "agent": "ada",
        "tool": "greet",
        "digest": seen[0],
        "outcome": "success",
        "code": None,
        "plugin": None,
        "seconds": 1.25,
        "content_bytes": len("grüße".encode()),
    }


async def test_a_denied_call_has_a_record_that_names_who_denied_it(log: Path) -> None:
    def gate(ctx: Any) -> None:
        ctx.on("tools/pre-execute", lambda: Deny("no"))

    class Gate:
        name = "gate"
        apply = staticmethod(gate)

    async with audited(log, Gate()) as host:
        await host.call()
        [record] = await host.written(1)
    assert (record["outcome"], record["code"], record["plugin"]) == ("denied", "DENIED", "gate")
    assert record["seconds"] is not None


async def test_a_failed_call_has_a_record_with_its_code(log: Path) -> None:
    async def fail(args: Any, exec: Any) -> str:
        raise HarnessError("later", code="BUSY")

    async with audited(log) as host:
        host.add("fail", fail)
        await host.call(name="fail")
        [record] = await host.written(1)
    assert (record["outcome"], record["code"]) == ("failure", "BUSY")


async def abort(host: Any) -> Any:
    controller = AbortController()
    controller.abort()
    return await host.call(signal=controller.signal)


async def deny_by_guard(host: Any) -> Any:
    def guard(exec: ToolExecution) -> str:
        return "no"

    host.ctx.tools.guard(guard)
    return await host.call()


async def ask_nobody(host: Any) -> Any:
    host.ctx.on("tools/pre-execute", lambda: Ask("sure?"))
    return await host.call(agent="ada")


async def break_policy(host: Any) -> Any:
    def broken(exec: ToolExecution) -> PreToolDecision:
        raise RuntimeError("bug")

    host.ctx.on("tools/pre-execute", broken)
    return await host.call()


async def withdraw(host: Any) -> Any:
    host.ctx.on("tools/post-execute", lambda: Block("secret"))
    return await host.call()


async def end_scope(host: Any) -> Any:
    await host.ctx.scope("ada").dispose()
    return await host.call(agent="ada")


async def give_no_json(host: Any) -> Any:
    return await host.call(arguments={"text": float("nan")})


async def call_nothing(host: Any) -> Any:
    return await host.call(name="nothing")


@pytest.mark.parametrize(
    ("way", "outcome", "expected"),
    [
        (abort, "aborted", "ABORTED_BEFORE_DISPATCH"),
        (deny_by_guard, "denied", "GUARDED"),
        (ask_nobody, "denied", "APPROVAL_UNAVAILABLE"),
        (end_scope, "denied", "SCOPE_CLOSED"),
        (break_policy, "failure", "LISTENER_FAILED"),
        (withdraw, "failure", "BLOCKED"),
        (give_no_json, "failure", "INVALID_ARGS"),
        (call_nothing, "failure", "UNKNOWN_TOOL"),
    ],
)
async def test_exactly_one_record_whatever_became_of_the_call(log: Path, way: Any, outcome: str, expected: str) -> None:
    async with audited(log) as host:
        assert code(await way(host)) == expected
    [record] = records(log)
    assert (record["outcome"], record["code"]) == (outcome, expected)


async def test_a_call_whose_caller_is_cancelled_has_a_record(log: Path) -> None:
    async with audited(log) as host:

        async def hang(args: Any, exec: Any) -> str:
            scope.cancel()
            await trio.sleep_forever()
            raise AssertionError

        host.add("hang", hang)
        with trio.CancelScope() as scope:
            await host.call(name="hang")
        [record] = await host.written(1)
    assert (record["outcome"], record["code"]) == ("aborted", "ABORTED")


async def test_a_nested_call_has_a_record_under_its_root(log: Path) -> None:
    async with audited(log) as host:

        async def outer(args: Any, exec: Any) -> str:
            await host.call("c1:1", parent=exec.token, root_call_id=exec.root_call_id)
            return "done"

        host.add("outer", outer)
        await host.call("c1", "outer")
        found = await host.written(2)
    assert [(record["call"], record["root"], record["tool"]) for record in found] == [
        ("c1:1", "c1", "work"),
        ("c1", "c1", "outer"),
    ]


async def test_a_retry_leaves_one_record_for_all_attempts(log: Path) -> None:
    async def again(exec: Any, next: Callable[[], Awaitable[ToolExecutionResult]]) -> ToolExecutionResult:
        await next()
        return await next()

    async with audited(log) as host:
        host.ctx.on("tools/execute", again)
        await host.call()
        assert host.ran == ["c1", "c1"]
    assert len(records(log)) == 1


async def test_arguments_are_left_out_unless_asked_for(log: Path) -> None:
    async with audited(log) as host:
        await host.call(arguments={"text": "private"})
    assert "private" not in text_of(log)


async def test_arguments_are_written_when_asked_for(log: Path) -> None:
    async with audited(log, arguments=True) as host:
        await host.call(arguments={"text": "a\nb\u2028c"})
    [record] = records(log)
    assert record["arguments"] == {"text": "a\nb\u2028c"}


async def test_long_arguments_are_cut_to_the_bound(log: Path) -> None:
    async with audited(log, arguments=True, max_argument_bytes=20) as host:
        await host.call(arguments={"text": "x" * 1000})
    [record] = records(log)
    assert record["arguments_head"] == '{"text":"xxxxxxxxxxx'
    assert record["arguments_bytes"] == 1011
    assert "arguments" not in record


async def test_an_agent_is_named_by_its_key(log: Path) -> None:
    key = ScopeKey("session")
    async with audited(log) as host:
        await host.call("c1", agent=key)
        await host.call("c2")
    assert [record["agent"] for record in records(log)] == [repr(key), None]


class Redactor:
    """A redactor that masks one word."""

    name = "redactor"

    def apply(self, ctx: Any) -> None:
        ctx.provide("redact", self)

    def text(self, text: str) -> str:
        return text.replace("hunter2", "***")

    def value(self, value: Any) -> Any:
        return json.loads(self.text(json.dumps(value)))


class Broken(Redactor):
    """A redactor that fails."""

    def text(self, text: str) -> str:
        raise RuntimeError("bug")


async def test_ids_names_and_arguments_are_masked_and_the_digest_is_not(log: Path) -> None:
    async with audited(log, Redactor(), arguments=True) as host:
        await host.call("c-hunter2", "hunter2", agent="agent-hunter2", arguments={"text": "is hunter2"})
    assert "hunter2" not in text_of(log)
    [record] = records(log)
    assert (record["call"], record["tool"], record["agent"]) == ("c-***", "***", "agent-***")
    assert record["arguments"] == {"text": "is ***"}
    assert len(record["digest"]) == 64


async def test_arguments_are_masked_before_they_are_cut(log: Path) -> None:
    async with audited(log, Redactor(), arguments=True, max_argument_bytes=13) as host:
        await host.call(arguments={"text": "hunter2" * 9})
    assert records(log)[0]["arguments_head"] == '{"text":"****'


async def test_names_are_masked_before_they_are_cut(log: Path) -> None:
    """Half a secret fits no pattern."""
    long = "c" * 996 + "hunter2"
    async with audited(log, Redactor()) as host:
        await host.call(long, long, agent=long)
    assert "hunt" not in text_of(log)
    assert records(log)[0]["call"] == "c" * 996 + "***"


async def test_a_redactor_that_fails_withholds_the_text_and_not_the_record(log: Path) -> None:
    async with audited(log, Broken(), arguments=True) as host:
        await host.call("c1", arguments={"text": "hunter2"})
    [record] = records(log)
    assert record["call"] == record["arguments_head"] == "[withheld]"
    assert record["outcome"] == "success"


async def test_names_of_any_length_and_agents_of_any_kind_make_a_bounded_line(log: Path) -> None:
    class Agent:
        def __repr__(self) -> str:
            raise RuntimeError("bug")

    async with audited(log) as host:
        await host.call("c" * 10_000, "t\ud800" * 5_000, agent=Agent())
    [record] = records(log)
    assert record["agent"] == "Agent"
    assert len(text_of(log)) < 15_000


async def test_content_of_any_depth_is_measured(log: Path) -> None:
    async with audited(log) as host:
        deep: Any = "ab"
        for _ in range(500):
            deep = [deep]

        async def finalize(exec: Any, result: Any, next: Any) -> Any:
            from dsh_hookspecs import Accept

            return Accept(content=[{"type": "text", "text": "abc"}, {"type": "deep", "part": deep}])

        host.ctx.on("tools/post-execute", finalize)
        await host.call()
    assert records(log)[0]["content_bytes"] == 5


async def test_every_call_of_a_storm_has_exactly_one_record(log: Path) -> None:
    async with audited(log) as host, trio.open_nursery() as nursery:
        for number in range(300):
            nursery.start_soon(host.call, f"c{number}", "work" if number % 3 else "nothing")
    assert sorted(record["call"] for record in records(log)) == sorted(f"c{number}" for number in range(300))


async def test_policies_behind_are_still_heard(log: Path) -> None:
    heard: list[str] = []

    async def policy(exec: ToolExecution, next: Next) -> PreToolDecision:
        heard.append(exec.call_id)
        return Allow()

    async with audited(log) as host:
        host.ctx.on("tools/pre-execute", policy)
        await host.call()
    assert heard == ["c1"]
