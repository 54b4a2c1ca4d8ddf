"""Channels that do wrong, in a host with a gate and a log: no call gets through, no record is lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, evolve, field
from dsh_hookspecs import AbortController, ApprovalRequest

from dsh_runtime import Host, ToolExecutionInput, define_tool, first_answer, open_host
from dsh_runtime.services.sessions.reading import Reader

Next = Callable[[], Any]


@define(eq=False)
class Trial:
    """A host that asks about every call, and what has become of one."""

    host: Host
    log: Path
    ran: list[Any] = field(factory=list)
    controller: AbortController = field(factory=AbortController)
    agent: Any = None

    async def run(self, body: Any, exec: Any) -> str:
        self.ran.append(exec.call_id)
        return "done"

    async def channel(self, name: str, answer: Callable[..., Any]) -> None:
        """Mount a channel."""

        class Channel:
            def apply(self, ctx: Any) -> None:
                ctx.on("approval/request", answer)

        channel: Any = Channel()
        channel.name = name
        await self.host.ctx.plugin(channel).wait()

    async def call(self, call_id: str = "c1", **arguments: Any) -> Any:
        call = ToolExecutionInput(call_id, "pay", arguments, self.controller.signal, agent=self.agent)
        with trio.fail_after(400):
            return await self.host.ctx.tools.execute(call)

    async def record(self, call_id: str = "c1") -> list[tuple[str, str | None]]:
        """What the log has of a call: its events, with the outcome of each question and the code of the result."""

        def look(reader: Reader) -> list[tuple[str, str | None]]:
            return [(event.type, _word(event)) for event in reader.call(call_id).events]

        found: list[tuple[str, str | None]] = await self.host.ctx.get("sessions").read(look)
        return found


def _word(event: Any) -> str | None:
    if event.type == "approval/decided":
        return str(event.payload["outcome"])
    error = event.payload.get("error") or {}
    return error.get("code") if event.type == "tool/result" else None


def story(decided: str, code: str | None) -> list[tuple[str, str | None]]:
    """Everything that the log is to have of a call that a person was asked about."""
    return [("tool/call", None), ("approval/asked", None), ("approval/decided", decided), ("tool/result", code)]


@asynccontextmanager
async def trial(tmp_path: Path) -> Any:
    log = tmp_path / "log.db"
    gate = {"id": "gate", "use": "permission-gate", "config": {"default": "ask"}}
    async with open_host({"host": {"log": {"path": str(log)}}, "plugin": [gate]}) as host:
        made = Trial(host, log)
        made.agent = host.ctx.scope().key
        host.ctx.tools.register(
            define_tool(name="pay", description="", parameters={}, output={"type": "string"}, execute=made.run)
        )
        yield made


async def hang() -> Any:
    await trio.sleep_forever()


def raise_error() -> Any:
    raise RuntimeError("the channel is broken")


@pytest.mark.parametrize(
    ("answer", "decided", "code"),
    [
        (raise_error, "failed", "LISTENER_FAILED"),
        (lambda: True, "failed", "LISTENER_FAILED"),
        (lambda: "yes", "failed", "LISTENER_FAILED"),
        (lambda: None, "failed", "LISTENER_FAILED"),
        (lambda: "unavailable", "unavailable", "APPROVAL_UNAVAILABLE"),
        (lambda: "rejected", "rejected", "APPROVAL_REJECTED"),
        (lambda: "cancelled", "cancelled", "APPROVAL_CANCELLED"),
    ],
    ids=["raises", "true", "another word", "nothing", "nobody", "no", "dismissed"],
)
async def test_whatever_is_no_yes_runs_nothing(tmp_path: Path, answer: Any, decided: str, code: str) -> None:
    async with trial(tmp_path) as made:
        await made.channel("person", answer)
        assert (await made.call()).error.info.code == code
        assert made.ran == []
        assert await made.record() == story(decided, code)


async def test_a_channel_that_hangs_runs_nothing(tmp_path: Path) -> None:
    """Until the deadline has passed."""
    log, gate = tmp_path / "log.db", {"id": "gate", "use": "permission-gate", "config": {"default": "ask"}}
    settings = {"log": {"path": str(log)}, "approval_timeout": 0.05}
    async with open_host({"host": settings, "plugin": [gate]}) as host:
        made = Trial(host, log, agent=host.ctx.scope().key)
        host.ctx.tools.register(
            define_tool(name="pay", description="", parameters={}, output={"type": "string"}, execute=made.run)
        )
        await made.channel("person", hang)
        assert (await made.call()).error.info.code == "APPROVAL_EXPIRED"
        assert made.ran == []
        assert await made.record() == story("expired", "APPROVAL_EXPIRED")


@pytest.mark.parametrize(("first", "second"), [("rejected", "allowed-once"), ("allowed-once", "rejected")])
async def test_a_second_answer_changes_nothing(tmp_path: Path, first: str, second: str) -> None:
    """Neither a yes behind a no, nor a no behind a yes."""
    taken: list[bool] = []
    async with trial(tmp_path) as made:

        def twice(pending: Any) -> None:
            for outcome in (first, second):
                taken.append(made.host.ctx.approval.answer(pending.id, pending.request.digest, outcome))

        made.host.ctx.approval.offer(twice)
        result = await made.call()
        assert taken == [True, False]
        assert made.ran == ([] if first == "rejected" else ["c1"])
        assert result.is_error is (first == "rejected")
        assert await made.record() == story(first, "APPROVAL_REJECTED" if first == "rejected" else None)


async def test_an_answer_for_another_calls_digest_is_for_no_call(tmp_path: Path) -> None:
    """A yes to a harmless call lets no other one through."""
    async with trial(tmp_path) as made:
        waiting: list[Any] = []
        made.host.ctx.approval.offer(waiting.append)
        results: dict[str, Any] = {}

        async def call(call_id: str, amount: int) -> None:
            results[call_id] = await made.call(call_id, amount=amount)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "small", 1)
            nursery.start_soon(call, "large", 10**6)
            while len(waiting) < 2:
                await trio.testing.wait_all_tasks_blocked(0.01)
            asked = {pending.request.exec.call_id: pending for pending in waiting}
            digest = asked["small"].request.digest
            assert not made.host.ctx.approval.answer(asked["large"].id, digest, "allowed-once")
            assert made.host.ctx.approval.answer(asked["small"].id, digest, "allowed-once")
            assert made.host.ctx.approval.answer(asked["large"].id, asked["large"].request.digest, "rejected")
        assert made.ran == ["small"]
        assert results["large"].error.info.code == "APPROVAL_REJECTED"
        assert await made.record("large") == story("rejected", "APPROVAL_REJECTED")


async def test_a_channel_cannot_put_another_call_in_the_place_of_the_asked_one(tmp_path: Path) -> None:
    """What it is given is frozen, and what it makes of it reaches nobody."""
    async with trial(tmp_path) as made:
        seen: list[Any] = []

        async def swap(request: ApprovalRequest, next: Next) -> Any:
            with pytest.raises((TypeError, AttributeError)):
                request.exec.arguments["amount"] = 1  # type: ignore[index, call-overload]
            evolve(request, digest="0" * 64)
            return await next()

        def person(request: ApprovalRequest) -> str:
            seen.append((request.exec.arguments, request.digest == request.exec.digest))
            return "rejected"

        await made.channel("swap", swap)
        await made.channel("person", person)
        assert (await made.call(amount=7)).error.info.code == "APPROVAL_REJECTED"
        assert seen == [({"amount": 7}, True)]


@pytest.mark.parametrize("late", [None, "allowed-once"], ids=["cancelled", "answers all the same"])
async def test_a_call_that_is_aborted_while_a_person_is_asked_runs_nothing(tmp_path: Path, late: str | None) -> None:
    async with trial(tmp_path) as made:

        async def person() -> Any:
            made.controller.abort("changed my mind")
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                if late is None:
                    raise
                return late

        await made.channel("person", person)
        assert (await made.call()).error.info.code == "ABORTED_BEFORE_DISPATCH"
        assert made.ran == []
        assert await made.record() == story("cancelled", "ABORTED_BEFORE_DISPATCH")


@pytest.mark.parametrize(
    ("one", "other", "decided"),
    [
        ("allowed-once", "rejected", "rejected"),
        ("rejected", "allowed-once", "rejected"),
        ("allowed-once", "allowed-once", "allowed-once"),
        ("unavailable", "allowed-once", "allowed-once"),
        ("unavailable", "unavailable", "unavailable"),
    ],
)
async def test_two_channels_at_once_give_one_outcome(tmp_path: Path, one: str, other: str, decided: str) -> None:
    """Of two answers in the same breath the stricter stands; the question is decided once."""

    def prompting(outcome: str) -> Callable[..., Any]:
        async def channel(request: ApprovalRequest, next: Next) -> Any:
            async def prompt() -> Any:
                return outcome

            return await first_answer(next, prompt)

        return channel

    async with trial(tmp_path) as made:
        await made.channel("one", prompting(one))
        await made.channel("other", prompting(other))
        result = await made.call()
        assert result.is_error is (decided != "allowed-once")
        assert made.ran == ([] if result.is_error else ["c1"])
        code = f"APPROVAL_{decided.upper()}" if result.is_error else None
        assert await made.record() == story(decided, code)
