"""The gate in a host: what it stops does not run, and what it lets through is not its own to decide alone."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dsh_hookspecs import (
    AbortController,
    Allow,
    Deny,
    ToolExecution,
    ToolExecutionFailure,
    ToolExecutionSuccess,
)

from dsh_runtime import HostError, ToolExecutionInput, define_tool, open_host


class Host:
    """A host with the gate and a few tools that write down that they ran."""

    def __init__(self, ctx: Any) -> None:
        self.ctx = ctx
        self.ran: list[str] = []
        for name in ("fs_write", "fs_read", "greet"):
            ctx.tools.register(self._tool(name))

    def _tool(self, name: str) -> Any:
        async def execute(args: Any, exec: Any) -> str:
            self.ran.append(name)
            return f"{name} of {args.get('path')}"

        parameters = {"path": {"type": "string"}}
        output = {"type": "string"}
        return define_tool(name=name, description=name, parameters=parameters, output=output, execute=execute)

    async def call(self, name: str, arguments: Mapping[str, Any], agent: Any = None) -> Any:
        call = ToolExecutionInput("c1", name, arguments, AbortController().signal, agent=agent)
        return await self.ctx.tools.execute(call)


@asynccontextmanager
async def gated(*rules: Any, default: str = "allow") -> AsyncIterator[Host]:
    gate = {"id": "gate", "use": "permission-gate", "config": {"default": default, "rules": list(rules)}}
    async with open_host({"plugin": [gate]}) as host:
        yield Host(host.ctx)


def refusal(result: Any) -> ToolExecutionFailure:
    assert isinstance(result, ToolExecutionFailure)
    assert result.error.info is not None
    return result


def code(result: Any) -> str | None:
    info = refusal(result).error.info
    return info.code if info is not None else None


def red_line(exec: ToolExecution) -> str | None:
    return "not below /etc" if "/etc" in str(exec.arguments) else None


def deny(exec: ToolExecution) -> Deny:
    return Deny("not today")


def allow(exec: ToolExecution) -> Allow:
    return Allow()


NO_WRITES = {"action": "deny", "tools": ["fs_write", "fs_edit"], "reason": "this host only reads"}
NO_SECRETS = {"action": "deny", "tools": ["*"], "paths": {"**": ["**/.env"]}}


@pytest.mark.trio
async def test_a_blacklisted_tool_is_denied_and_its_body_never_runs() -> None:
    async with gated(NO_WRITES) as host:
        result = refusal(await host.call("fs_write", {"path": "a.txt"}))
        assert code(result) == "DENIED"
        assert "'fs_write' by rule 1 (deny fs_write, fs_edit): this host only reads." in result.error.message
        assert host.ran == []


@pytest.mark.trio
@pytest.mark.parametrize("path", [".env", "config/../.env", "config\\.ENV"])
async def test_an_allowed_tool_with_an_argument_that_touches_env_is_denied(path: str) -> None:
    async with gated(NO_SECRETS, {"action": "allow", "tools": ["fs_read"]}, default="deny") as host:
        assert code(await host.call("fs_read", {"path": path})) == "DENIED"
        assert host.ran == []


@pytest.mark.trio
async def test_a_normal_tool_still_gets_its_real_result() -> None:
    async with gated(NO_WRITES, NO_SECRETS) as host:
        result = await host.call("fs_read", {"path": "a.txt"})
        assert isinstance(result, ToolExecutionSuccess)
        assert result.value == "fs_read of a.txt"


@pytest.mark.trio
async def test_a_guards_red_line_cannot_be_bypassed_by_an_allow() -> None:
    async with gated({"action": "allow", "tools": ["*"]}) as host:
        host.ctx.tools.guard(red_line)
        assert code(await host.call("fs_read", {"path": "/etc/passwd"})) == "GUARDED"
        assert not (await host.call("fs_read", {"path": "a.txt"})).is_error
        assert host.ran == ["fs_read"]


@pytest.mark.trio
async def test_an_allowed_call_is_left_to_the_policies_behind_the_gate() -> None:
    async with gated({"action": "allow", "tools": ["*"]}) as host:
        host.ctx.on("tools/pre-execute", deny)
        assert refusal(await host.call("greet", {})).error.message == "not today"


@pytest.mark.trio
async def test_a_policy_behind_the_gate_does_not_hear_what_the_gate_denies() -> None:
    heard: list[str] = []

    def listen(exec: ToolExecution, next: Callable[[], Any]) -> Any:
        heard.append(exec.name)
        return next()

    async with gated(NO_WRITES) as host:
        host.ctx.on("tools/pre-execute", listen)
        await host.call("fs_write", {})
        await host.call("fs_read", {})
    assert heard == ["fs_read"]


@pytest.mark.trio
async def test_an_allow_behind_the_gate_does_not_undo_its_denial() -> None:
    async with gated(NO_WRITES) as host:
        host.ctx.on("tools/pre-execute", allow)
        assert code(await host.call("fs_write", {})) == "DENIED"


class Person:
    """An approval service with one answer for all."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.reasons: list[str | None] = []

    async def request(self, request: Any) -> str:
        self.reasons.append(request.reason)
        return self.answer


@pytest.mark.trio
@pytest.mark.parametrize(("answer", "ran"), [("allowed-once", ["greet"]), ("rejected", [])])
async def test_an_asked_call_waits_for_a_person_who_is_told_why(answer: str, ran: list[str]) -> None:
    person = Person(answer)
    async with gated({"action": "ask", "tools": ["greet"], "reason": "greetings are personal"}) as host:
        host.ctx.provide("approval", person)
        await host.call("greet", {}, agent="ada")
        assert host.ran == ran
    assert person.reasons == ["The permission gate asks about 'greet' by rule 1 (ask greet): greetings are personal."]


@pytest.mark.trio
async def test_an_asked_call_without_anybody_to_ask_does_not_run() -> None:
    async with gated(default="ask") as host:
        assert code(await host.call("greet", {})) == "APPROVAL_UNAVAILABLE"
        assert host.ran == []


@pytest.mark.trio
async def test_a_config_with_mistakes_stops_the_start_and_names_them_all() -> None:
    rules = [
        {"action": "denied", "tools": []},
        {"action": "deny", "tools": ["a["], "arguments": {"path": "*.env"}},
        {"action": "deny", "tools": ["*"], "paths": {"a..b": ["./x"]}, "argument": {}},
        {"action": "deny"},
    ]
    with pytest.raises(HostError) as caught:
        async with gated(*rules, default="maybe"):
            pass  # pragma: no cover
    words = ["denied", "no glob", "'a['", "path", "'a..b'", "'./x'", "'arguments'", "'tools'", "maybe"]
    assert [word for word in words if word not in str(caught.value)] == []
