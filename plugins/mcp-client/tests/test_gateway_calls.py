"""Remote tools as tools of the host: lists, results, failures, progress, cancellation."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
import trio
from dsh_hookspecs import AbortController, Deny
from dsh_plugin_mcp_client import Config
from dsh_plugin_mcp_client._fingerprints import Book, Fingerprints
from dsh_plugin_mcp_client._keeper import Keeper
from gateway_kit import code, entry, gateway, row

from dsh_runtime import HostError, open_host


def alive(pid: int) -> bool:
    """Whether a process is there, other than as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_schema_is_relayed_byte_for_byte(tmp_path: Path) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"z": {"type": ["string", "null"], "x-own": 1.0}, "a": {"$ref": "#/definitions/n"}},
        "type": "object",
        "definitions": {"n": {"minimum": 3}},
    }
    async with gateway(tmp_path, tools=[entry("echo", inputSchema=schema)]) as gate:
        (found,) = gate.ctx.tools.schemas()
        assert json.dumps(found["parameters"]) == json.dumps(schema)
        assert code(await gate.call("echo", z=None, a=3)) is None
        assert code(await gate.call("echo", a=2)) == "INVALID_ARGS"


async def test_arguments_reach_the_server_as_they_were_given(tmp_path: Path) -> None:
    given = {"n": None, "big": 10**30, "f": 1.0, "s": "ü\N{MAN}", "l": [None, {"x": None}]}
    async with gateway(tmp_path) as gate:
        result = await gate.call("echo", **given)
        assert json.loads(result.content[0]["text"]) == given


async def test_a_result_keeps_blocks_of_every_kind(tmp_path: Path) -> None:
    blocks = [
        {"type": "text", "text": "t", "annotations": {"audience": ["user"]}},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
    ]
    async with gateway(tmp_path) as gate:
        result = await gate.call("answer", result={"content": blocks, "isError": False})
        assert result.content == blocks
        assert result.value == blocks


async def test_structured_content_is_the_value(tmp_path: Path) -> None:
    answer = {"content": [{"type": "text", "text": "shown"}], "structuredContent": {"n": 1}, "isError": False}
    async with gateway(tmp_path) as gate:
        result = await gate.call("answer", result=answer)
        assert (result.value, result.content) == ({"n": 1}, answer["content"])


async def test_a_failure_of_the_server_keeps_its_content(tmp_path: Path) -> None:
    blocks = [{"type": "text", "text": "no such file"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]
    async with gateway(tmp_path) as gate:
        result = await gate.call("answer", result={"content": blocks, "isError": True})
        assert result.is_error
        assert (result.error.message, result.content) == ("no such file", blocks)
        assert result.error.info.plugin == "rude"


async def test_an_answer_against_the_tools_own_schema_is_refused(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with gateway(tmp_path, tools=[entry("answer", outputSchema=schema)]) as gate:
        right = {"content": [], "structuredContent": {"n": 1}, "isError": False}
        assert code(await gate.call("answer", result=right)) is None
        for wrong in ({"structuredContent": {"n": "1"}}, {}):
            result = await gate.call("answer", result={"content": [], "isError": False, **wrong})
            assert code(result) == "INVALID_TOOL_OUTPUT"


@pytest.mark.parametrize(("validation", "expected"), [("strict", "INVALID_ARGS"), ("warn", None), ("off", None)])
async def test_how_strictly_arguments_are_checked_is_a_setting(
    tmp_path: Path, validation: str, expected: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    tools = [entry("echo", inputSchema={"type": "object", "required": ["a"]})]
    async with gateway(tmp_path, tools=tools, validation=validation) as gate:
        assert code(await gate.call("echo")) == expected
    assert ("refuses its arguments" in caplog.text) == (validation == "warn")


async def test_progress_goes_through(tmp_path: Path) -> None:
    heard: list[Any] = []

    class Listener:
        name = "listener"

        def apply(self, ctx: Any) -> None:
            ctx.on("tools/progress", lambda progress: heard.append((progress.done, progress.total, progress.message)))

    async with gateway(tmp_path, plugins=[Listener()]) as gate:
        assert code(await gate.call("progress")) is None
    assert heard == [(1, 2, "step 1"), (2, 2, "step 2")]


async def test_cancelling_a_call_cancels_it_at_the_server(tmp_path: Path) -> None:
    async with gateway(tmp_path) as gate:
        controller = AbortController()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gate.call, "never", controller)
            await trio.testing.wait_all_tasks_blocked(0.05)
            controller.abort("enough")
        result = await gate.call("cancelled")
        assert len(result.value["cancelled"]) == 1


async def test_a_call_that_is_not_answered_ends_in_time(tmp_path: Path) -> None:
    async with gateway(tmp_path, call_timeout=0.2) as gate:
        assert code(await gate.call("never")) == "MCP_TIMEOUT"
        assert code(await gate.call("echo")) is None


async def test_policy_stands_before_a_remote_tool(tmp_path: Path) -> None:
    class Gate:
        name = "gate"

        def apply(self, ctx: Any) -> None:
            ctx.on("tools/pre-execute", lambda: Deny("no"))

    async with gateway(tmp_path, plugins=[Gate()]) as gate:
        assert code(await gate.call("die")) == "DENIED"
        assert "die" in gate.names()


async def test_the_environment_is_what_the_config_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    async with gateway(tmp_path, env={"GIVEN": "1"}) as gate:
        found = (await gate.call("environ")).value
        # The interpreter may add how it decodes.
        assert {key: value for key, value in found.items() if not key.startswith("LC_")} == {"GIVEN": "1"}


async def test_annotations_count_only_where_the_server_is_trusted(tmp_path: Path) -> None:
    tools = [entry("echo", annotations={"readOnlyHint": True, "idempotentHint": True})]
    for trusted in (False, True):
        async with gateway(tmp_path, tools=tools, trust_annotations=trusted) as gate:
            definition = gate.ctx.tools.get("echo")
            assert definition.idempotent is trusted
            assert (definition.is_concurrency_safe is not None) is trusted


async def test_a_prefix_stands_before_every_name(tmp_path: Path) -> None:
    async with gateway(tmp_path, tools=[entry("echo")], prefix="rude_") as gate:
        assert gate.names() == ["rude_echo"]
        assert code(await gate.call("rude_echo")) is None


async def test_a_clash_names_both_owners(tmp_path: Path) -> None:
    rows = [row("first", tmp_path, tools=[entry("echo")]), row("second", tmp_path, tools=[entry("echo")])]
    with pytest.raises(HostError) as caught:
        async with open_host({"host": {"log": {"enabled": False}}, "plugin": rows}):
            pass
    assert all(word in str(caught.value) for word in ("'first'", "'second'", "'echo'", "prefix"))


# The life of a server


async def test_a_server_that_dies_takes_its_tools_along_and_comes_back(tmp_path: Path) -> None:
    async with gateway(tmp_path) as gate:
        before = gate.names()
        assert code(await gate.call("die")) == "MCP_SERVER_GONE"
        await gate.until(lambda: gate.names() == [])
        assert code(await gate.call("echo")) == "UNKNOWN_TOOL"
        await gate.until(lambda: gate.names() == before)
        assert code(await gate.call("echo")) is None


async def test_tools_that_the_server_adds_and_removes_come_and_go(tmp_path: Path) -> None:
    async with gateway(tmp_path, tools=[entry("echo"), entry("change")]) as gate:
        echo = gate.ctx.tools.get("echo")
        await gate.call("change", tools=[entry("change"), entry("pid"), entry("echo")])
        await gate.until(lambda: set(gate.names()) == {"change", "pid", "echo"})
        assert gate.ctx.tools.get("echo") is echo
        await gate.call("change", tools=[entry("change")])
        await gate.until(lambda: gate.names() == ["change"])


@pytest.mark.parametrize("how", ["polite", "stubborn"])
async def test_unloading_ends_the_server_and_what_it_has_started(tmp_path: Path, how: str) -> None:
    async with gateway(tmp_path, how, stop_timeout=0.2) as gate:
        pids = [(await gate.call(name)).value["pid"] for name in ("pid", "child")]
        assert all(map(alive, pids))
    with trio.fail_after(5):
        while any(map(alive, pids)):  # noqa: ASYNC110 - another process makes it so
            await trio.sleep(0.01)
    # The server has been waited for; what it has started is for whoever adopts orphans.
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)  # noqa: ASYNC222 - does not wait


async def test_a_server_that_does_not_come_back_is_tried_ever_more_seldom(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    config = Config(command=("no-such-program",), max_backoff=4.0, start="background")
    prints = Fingerprints(Book(tmp_path / "f.json"), "s")
    tried: list[float] = []

    class Watched(Keeper):
        async def _once(self) -> Exception:
            tried.append(trio.current_time())
            return await super()._once()

    async with open_host({"host": {"log": {"enabled": False}}}) as host:
        with trio.move_on_after(60):
            await Watched(host.ctx, config, prints, "s").run()
    pauses = [after - before for before, after in itertools.pairwise(tried)]
    assert pauses[0] < 0.3
    assert pauses[:5] == sorted(pauses[:5])
    assert max(pauses) <= 4.0 * 1.2
    assert len(pauses) > 10
