"""Command hooks as policy: what they read, what they say, and that whatever goes wrong with one denies."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import dsh_plugin_hooks_command
import pytest
import trio
from dsh_hookspecs import AbortController
from dsh_plugin_hooks_command._answers import Output, after, before
from dsh_plugin_hooks_command._errors import HookCommandError
from hypothesis import given, settings
from hypothesis import strategies as st

from dsh_runtime import HostError, ToolDefinition, ToolExecutionInput, ToolOutput, open_host

PATIENCE = 20


class Tool:
    """A plugin with one tool, which notes that it has run."""

    name = "tool"
    inject = ("tools",)

    def __init__(self) -> None:
        self.ran = 0

    def apply(self, ctx: Any) -> None:
        ctx.tools.register(ToolDefinition("write", "…", {"type": "object"}, ToolOutput(schema={}), self.execute))

    async def execute(self, args: Any, exec: Any) -> Any:
        self.ran += 1
        if args.get("fail"):
            raise LookupError("no such file")
        return {"path": args.get("path")}


class Yes:
    """Answers every question with yes."""

    name = "yes"
    inject = ("approval",)

    def apply(self, ctx: Any) -> None:
        ctx.on("approval/request", lambda request: "allowed-once")


class Hooked:
    """A host with hooks, and its tool."""

    def __init__(self, host: Any, tool: Tool, agent: Any) -> None:
        self.host, self.tool, self.agent = host, tool, agent

    async def call(self, controller: AbortController | None = None, **arguments: Any) -> Any:
        signal = (controller or AbortController()).signal
        with trio.fail_after(PATIENCE):
            return await self.host.ctx.tools.execute(
                ToolExecutionInput("c1", "write", arguments, signal, agent=self.agent)
            )


@asynccontextmanager
async def hooked(**config: Any) -> AsyncIterator[Hooked]:
    tool = Tool()
    plugins = [(dsh_plugin_hooks_command, config), tool, Yes()]
    async with open_host({"host": {"log": {"enabled": False}}}, plugins=plugins) as host:
        yield Hooked(host, tool, host.ctx.scope().key)


def pre(command: str, **more: Any) -> dict[str, Any]:
    return {"pre_tool_use": [{"command": command, **more}]}


def post(command: str, **more: Any) -> dict[str, Any]:
    return {"post_tool_use": [{"command": command, **more}]}


def says(document: Any) -> str:
    return f"cat >/dev/null; echo '{json.dumps(document)}'"


def decides(decision: Any, **more: Any) -> str:
    own = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
    return says({"hookSpecificOutput": own})


def code(result: Any) -> str | None:
    return result.error.info.code if result.is_error and result.error.info is not None else None


# Before a call


@pytest.mark.parametrize("command", ["true", "echo fine", decides("allow"), says({"decision": "approve"}), says({})])
async def test_a_hook_that_has_nothing_against_it_lets_the_call_go_on(command: str) -> None:
    async with hooked(**pre(command)) as host:
        assert code(await host.call()) is None
        assert host.tool.ran == 1


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo not here >&2; exit 2", "not here"),
        (decides("deny", permissionDecisionReason="not now"), "not now"),
        (says({"decision": "block", "reason": "never"}), "never"),
        (says({"continue": False, "stopReason": "stop"}), "stop"),
    ],
)
async def test_a_hook_denies_with_its_reason(command: str, reason: str) -> None:
    async with hooked(**pre(command)) as host:
        result = await host.call()
        assert (code(result), host.tool.ran) == ("DENIED", 0)
        assert reason in result.error.message


async def test_a_hook_that_asks_has_a_person_asked() -> None:
    async with hooked(**pre(decides("ask"))) as host:
        assert code(await host.call()) is None
        host.agent = None
        assert code(await host.call()) == "APPROVAL_UNAVAILABLE"


FAILING = {
    "another exit code": "exit 1",
    "killed": "kill -9 $$",
    "not there": "/no/such/program",
    "broken json": "echo '{'",
    "an unknown decision": decides("perhaps"),
    "a decision of another type": decides({}),
    "changed arguments": decides("allow", updatedInput={"path": "/etc"}),
    "no object": says({"hookSpecificOutput": []}),
    "a flood": "head -c 100000 /dev/zero",
    "too slow": "sleep 100",
}


@pytest.mark.parametrize("command", FAILING.values(), ids=FAILING)
async def test_a_hook_that_fails_before_a_call_fails_it_closed(command: str) -> None:
    async with hooked(**pre(command, timeout=0.3 if "sleep" in command else 10), max_output_bytes=10_000) as host:
        assert (code(await host.call()), host.tool.ran) == ("HOOK_FAILED", 0)


@pytest.mark.parametrize("command", [FAILING["another exit code"], FAILING["broken json"], FAILING["too slow"]])
async def test_a_hook_that_fails_after_a_call_fails_it_too(command: str) -> None:
    async with hooked(**post(command, timeout=0.3)) as host:
        assert (code(await host.call()), host.tool.ran) == ("HOOK_FAILED", 1)


async def test_the_strictest_of_several_hooks_counts() -> None:
    hooks = [{"command": command} for command in (decides("allow"), decides("ask"), decides("deny"))]
    async with hooked(pre_tool_use=hooks) as host:
        assert code(await host.call()) == "DENIED"


@pytest.mark.parametrize(
    ("matcher", "concerned"),
    [("*", True), ("", True), ("write", True), ("read|write", True), ("wri", False), ("wr.*", True), ("Write", False)],
)
async def test_a_matcher_matches_whole_names(matcher: str, concerned: bool) -> None:
    async with hooked(**pre("exit 2", matcher=matcher)) as host:
        assert (code(await host.call()) == "DENIED") is concerned


async def test_a_hook_reads_the_call_under_the_name_it_knows(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    async with hooked(**pre(f"cat > {seen}", matcher="Write"), tool_names={"write": "Write"}) as host:
        await host.call(path="/x")
    read = json.loads(seen.read_text())
    assert (read["hook_event_name"], read["tool_name"], read["tool_input"]) == ("PreToolUse", "Write", {"path": "/x"})
    assert (read["tool_use_id"], read["dry_run"]) == ("c1", False)


async def test_a_hook_does_not_see_the_hosts_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOST_SECRET", "x")
    seen = tmp_path / "seen"
    async with hooked(**pre(f"env > {seen}"), env={"GIVEN": "1"}) as host:
        await host.call()
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert {"PATH", "GIVEN", "CLAUDE_PROJECT_DIR"} <= names
    assert "HOST_SECRET" not in names


# After a call


async def test_a_hook_reads_the_result(tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    async with hooked(**post(f"cat > {seen}")) as host:
        await host.call(path="/x")
        assert json.loads(seen.read_text())["tool_response"] == {"path": "/x"}
        await host.call(fail=True)
        assert json.loads(seen.read_text())["tool_response"]["is_error"] is True


@pytest.mark.parametrize("command", ["echo undo it >&2; exit 2", says({"decision": "block", "reason": "undo it"})])
async def test_a_hook_puts_feedback_in_the_place_of_a_result(command: str) -> None:
    async with hooked(**post(command)) as host:
        result = await host.call()
        assert code(result) == "BLOCKED"
        assert "undo it" in result.content[0]["text"]


async def test_a_hook_adds_a_remark() -> None:
    own = {"hookEventName": "PostToolUse", "additionalContext": "run the tests"}
    async with hooked(**post(says({"hookSpecificOutput": own}))) as host:
        (message,) = (await host.call()).additional_contexts
        assert (message.source, message.content[0]["text"]) == ("hooks-command", "run the tests")


# Nothing is left


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def gone(pid: int) -> None:
    with trio.fail_after(PATIENCE):
        while alive(pid):  # noqa: ASYNC110 - the kernel makes it so
            await trio.sleep(0.01)


async def test_what_a_hook_has_started_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with hooked(**pre(f"sleep 1000 & echo $! > {file}")) as host:
        assert code(await host.call()) is None
        await gone(int(file.read_text()))


async def test_an_aborted_call_ends_its_hook(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with hooked(**pre(f"echo $$ > {file}; sleep 1000")) as host:
        with trio.move_on_after(PATIENCE) as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(host.call)
                while not (file.exists() and file.read_text()):  # noqa: ASYNC110 - another process writes it
                    await trio.sleep(0.01)
                scope.cancel()
        await gone(int(file.read_text()))
        assert host.tool.ran == 0


# Settings


async def test_the_hooks_of_a_settings_file_are_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    hook = {"type": "command", "command": "exit 2"}
    file.write_text(json.dumps({"hooks": {"PreToolUse": [{"matcher": "write", "hooks": [hook]}], "Stop": "whatever"}}))
    async with hooked(settings=str(file)) as host:
        assert code(await host.call()) == "DENIED"


@pytest.mark.parametrize(
    "document",
    [
        1,
        {"hooks": []},
        {"hooks": {"PreToolUse": {}}},
        {"hooks": {"PreToolUse": [{}]}},
        {"hooks": {"PreToolUse": [{"hooks": [{"type": "prompt"}]}]}},
        {"hooks": {"PreToolUse": [{"matcher": "(", "hooks": [{"type": "command", "command": "x"}]}]}},
        {"hooks": {"PostToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}},
    ],
)
async def test_settings_that_cannot_be_taken_over_stop_the_start(tmp_path: Path, document: Any) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(document))
    row = {"id": "hooks", "use": "hooks-command", "config": {"settings": str(file)}}
    with pytest.raises(HostError, match=r"settings\.json"):
        async with open_host({"host": {"log": {"enabled": False}}, "plugin": [row]}):
            pass


@given(code=st.sampled_from([0, 1, 2, -9]), stdout=st.binary(max_size=50), stderr=st.binary(max_size=50))
@settings(deadline=None)
def test_only_an_orderly_end_is_an_answer(code: int, stdout: bytes, stderr: bytes) -> None:
    output = Output(code, stdout, stderr)
    for read in (before, after):
        if code in (1, -9):
            with pytest.raises(HookCommandError):
                read(output, "the hook")
    if code == 2:
        assert before(output, "the hook").decision == "deny"
        assert after(output, "the hook").feedback
