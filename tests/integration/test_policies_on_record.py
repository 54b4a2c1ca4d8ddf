"""The first-party policies beside a session log: what the log, the audit file and the body tell is one story."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field
from dsh_hookspecs import HarnessError

from dsh_runtime import AbortController, Host, ToolExecutionInput, define_tool, open_host
from dsh_runtime.services.sessions.reading import Reader

AUDIT = {"id": "audit", "use": "audit-jsonl", "config": {"path": "audit.jsonl", "arguments": True}}
RETRY = {"id": "retry", "use": "retry", "config": {"attempts": 3, "delay": 0, "codes": ["BUSY"]}}


@define(eq=False)
class Trial:
    """A host with a log, an audit file and some policies; its tools count how often their bodies run."""

    host: Host
    folder: Path
    agent: Any
    ran: Counter[str] = field(factory=Counter)
    fails: int = 0

    def add(self, name: str, **members: Any) -> None:
        async def body(args: Any, exec: Any) -> str:
            self.ran[name] += 1
            if name == "wait":
                await trio.sleep_forever()
            if self.ran[name] <= self.fails:
                raise HarnessError(f"not yet: {self.ran[name]}", code="BUSY")
            return "x" * int(args.get("size", 4))

        parameters = {"size": {"type": "integer"}}
        tool = define_tool(
            name=name, description="", parameters=parameters, output={"type": "string"}, execute=body, **members
        )
        self.host.ctx.tools.register(tool)

    async def call(self, name: str, call_id: str = "c1", *, signal: Any = None, **arguments: Any) -> Any:
        signal = signal or AbortController().signal
        return await self.host.ctx.tools.execute(ToolExecutionInput(call_id, name, arguments, signal, agent=self.agent))

    def events(self, call_id: str = "c1") -> list[Any]:
        with Reader(self.folder / "log.db") as reader:
            return list(reader.call(call_id).events)

    def story(self, call_id: str = "c1") -> list[tuple[str, str | None, str]]:
        """The stages that answered, who they were, and what they said."""
        steps = self.events(call_id)[-1].payload["story"]
        return [(step["stage"], step.get("plugin"), step["answer"]) for step in steps]

    def audited(self) -> list[dict[str, Any]]:
        """The lines of the audit file; complete once the host has closed."""
        return [json.loads(line) for line in (self.folder / "audit.jsonl").read_text().splitlines()]


@asynccontextmanager
async def trial(folder: Path, *rows: dict[str, Any], fails: int = 0) -> Any:
    audit = {**AUDIT, "config": {**AUDIT["config"], "path": str(folder / "audit.jsonl")}}  # type: ignore[dict-item]
    config = {"host": {"log": {"path": str(folder / "log.db")}}, "plugin": [audit, *rows]}
    async with open_host(config) as host:
        made = Trial(host, folder, host.ctx.scope().key, fails=fails)
        for name, members in {"plain": {}, "sure": {"idempotent": True}, "wait": {"idempotent": True}}.items():
            made.add(name, **members)
        yield made


async def test_all_attempts_of_a_call_are_one_call_on_record(tmp_path: Path) -> None:
    """One call and one result in the log, one line in the audit file, and the story has every attempt."""
    async with trial(tmp_path, RETRY, fails=2) as made:
        assert (await made.call("sure")).value == "xxxx"
    assert made.ran["sure"] == 3
    assert [event.type for event in made.events()] == ["tool/call", "tool/result"]
    assert made.events()[-1].payload["outcome"] == "success"
    attempts = [answer for stage, _, answer in made.story() if stage == "body"]
    assert attempts == ["failure", "failure", "success"]
    assert ("tools/execute", "retry", "pass") in made.story()
    [line] = made.audited()
    assert (line["call"], line["outcome"], line["digest"]) == ("c1", "success", made.events()[0].payload["digest"])


async def test_what_is_not_declared_idempotent_has_one_attempt_on_record(tmp_path: Path) -> None:
    async with trial(tmp_path, RETRY, fails=2) as made:
        assert (await made.call("plain")).error.info.code == "BUSY"
    assert made.ran["plain"] == 1
    assert [stage for stage, _, _ in made.story()].count("body") == 1
    assert [line["code"] for line in made.audited()] == ["BUSY"]


async def test_log_and_audit_file_tell_the_same_of_every_call(tmp_path: Path) -> None:
    """However it ends: what ran, what was refused and by whom, under the same digest."""
    gate: dict[str, Any] = {"id": "gate", "use": "permission-gate", "config": {"default": "allow", "rules": []}}
    gate["config"]["rules"] = [
        {"action": "deny", "tools": ["denied"], "reason": "no"},
        {"action": "ask", "tools": ["asked"]},
    ]
    limit = {"id": "limit", "use": "rate-limit", "config": {"rules": [{"tools": ["sure"], "calls": 1, "seconds": 60}]}}
    spill = {"id": "spill", "use": "spill", "config": {"folder": str(tmp_path / "spilled")}}
    async with trial(tmp_path, gate, limit, spill) as made:
        aborted, gone = AbortController(), AbortController()
        gone.abort("gone")
        await made.call("plain", "ok")
        await made.call("plain", "large", size=100_000)
        await made.call("plain", "odd", size="much")
        await made.call("denied", "denied")
        await made.call("asked", "asked")
        await made.call("unknown", "unknown")
        await made.call("sure", "first")
        await made.call("sure", "second")
        await made.call("plain", "before", signal=gone.signal)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: made.call("wait", "aborted", signal=aborted.signal))
            await trio.testing.wait_all_tasks_blocked(0.02)
            aborted.abort("enough")
    audited = {line["call"]: line for line in made.audited()}
    assert len(audited) == len(made.audited()) == 10
    for call_id, line in audited.items():
        first, *_, last = made.events(call_id)
        error = last.payload.get("error") or {}
        assert (line["digest"], line["tool"]) == (first.payload["digest"], first.payload["name"])
        assert (line["code"], line["plugin"]) == (error.get("code"), error.get("plugin"))
        assert (line["outcome"] == "success") is (last.payload["outcome"] == "success")
    refused = {call_id: line["code"] for call_id, line in audited.items() if line["outcome"] != "success"}
    assert refused == {
        "odd": "INVALID_ARGS",
        "denied": "DENIED",
        "asked": "APPROVAL_UNAVAILABLE",
        "unknown": "UNKNOWN_TOOL",
        "second": "DENIED",
        "before": "ABORTED_BEFORE_DISPATCH",
        "aborted": "ABORTED",
    }
    assert made.ran == {"plain": 2, "sure": 1, "wait": 1}


async def test_a_log_that_breaks_refuses_calls_and_the_audit_file_says_so(tmp_path: Path) -> None:
    async with trial(tmp_path) as made:
        await made.call("plain", "ok")
        await made.host.ctx.get("sessions")._store.run(lambda db: db.execute("PRAGMA query_only = 1"))
        assert (await made.call("plain", "late")).error.info.code == "LOG_UNAVAILABLE"
    assert made.ran["plain"] == 1
    assert [(line["call"], line["code"]) for line in made.audited()] == [("ok", None), ("late", "LOG_UNAVAILABLE")]


@pytest.mark.parametrize("per", ["agent", "host"])
async def test_a_rate_limit_holds_for_calls_that_come_at_once(tmp_path: Path, per: str) -> None:
    """Of all that two agents ask for in the same breath, no more runs than the rule says."""
    rule = {"tools": ["*"], "calls": 5, "seconds": 3600, "per": per, "together": True}
    async with trial(tmp_path, {"id": "limit", "use": "rate-limit", "config": {"rules": [rule]}}) as made:
        agents = [made.agent, made.host.ctx.scope().key]
        codes: Counter[str | None] = Counter()

        async def call(number: int) -> None:
            signal, name = AbortController().signal, ["plain", "sure"][number // 2 % 2]
            given = ToolExecutionInput(f"c{number}", name, {}, signal, agent=agents[number % 2])
            result = await made.host.ctx.tools.execute(given)
            codes[result.error.info.code if result.is_error else None] += 1

        async with trio.open_nursery() as nursery:
            for number in range(60):
                nursery.start_soon(call, number)
        allowed = 10 if per == "agent" else 5
        assert codes == {None: allowed, "DENIED": 60 - allowed}
    assert made.ran.total() == allowed
    assert Counter(line["outcome"] for line in made.audited()) == {"success": allowed, "denied": 60 - allowed}
