"""``dsh-run mcp`` in a process of its own, with clients at its pipes: well-behaved, careless and hostile ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
import trio

Piped = Callable[..., AbstractAsyncContextManager[Any]]
OverStdio = Callable[..., AbstractAsyncContextManager[tuple[Any, Path]]]
ERAS = ("auto", "legacy")
PATIENCE = 20
WAITING = {"name": "wait", "_meta": {"progressToken": "t"}}


@pytest.mark.parametrize("mode", ERAS)
async def test_the_sdks_client_is_served_end_to_end(over_stdio: OverStdio, mode: str) -> None:
    """List, call, structured content, error, progress and a change of the tools."""
    heard: list[float] = []
    changed = trio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def on_message(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            changed.set()

    async with over_stdio(mode, message_handler=on_message) as (client, _):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["echo"].input_schema["properties"] == {"text": {"type": "string", "default": None}}
        assert (await client.call_tool("echo", {"text": "é\n"})).structured_content == {"text": "é\n"}
        failed = await client.call_tool("fail", {})
        assert failed.is_error
        assert failed.content[0].text == "Error: boom"
        assert (await client.call_tool("numbers", {})).content[0].text == "[1, 2, 3]"
        await client.call_tool("count", {}, progress_callback=on_progress)
        assert heard == [1, 2, 3]
        await client.call_tool("learn", {})
        if mode == "legacy":
            await changed.wait()
        assert "late" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("mode", ERAS)
async def test_the_sdks_client_cancels_a_call(over_stdio: OverStdio, mode: str) -> None:
    """The body in the other process is stopped, by its signal."""
    begun = trio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with over_stdio(mode) as (client, log):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_call_wait, client, on_progress)
                await begun.wait()
                scope.cancel()
        assert (await client.call_tool("echo", {"text": "still here"})).structured_content == {"text": "still here"}
        entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["aborted"] for entry in entries if entry["event"] == "stopped"] == [True]
    assert [entry["code"] for entry in entries if entry["event"] == "result"] == ["ABORTED", None]


async def _call_wait(client: Any, on_progress: Any) -> None:
    await client.call_tool("wait", {}, progress_callback=on_progress)


async def test_schemas_are_relayed_byte_for_byte(piped: Piped) -> None:
    """Whatever the dialect, the order and the nulls."""
    async with piped() as pipes:
        await pipes.greet()
        tools = {tool["name"]: tool for tool in (await pipes.ask("tools/list", 1))["result"]["tools"]}
        assert json.dumps(tools["odd"]["inputSchema"]) == (
            '{"title": null, "$schema": "http://json-schema.org/draft-04/schema#", "required": [], '
            '"properties": {"z": {"exclusiveMinimum": true, "minimum": 1.0}, "a": {"default": null}}, "type": "object"}'
        )
        await pipes.leave()


RUBBISH = {
    "no JSON": b"hello?",
    "no UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "binary": bytes(range(256)).replace(b"\n", b""),
    "half an object": b'{"jsonrpc":"2.0","id":1,',
    "a number": b"42",
    "null": b"null",
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    "another version": b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    "an id of a wrong type": b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    "params of a wrong type": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}',
    "an unknown method": b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
    "a method that is no text": b'{"jsonrpc":"2.0","id":1,"method":null}',
    "100,000 levels of arrays": b"[" * 100_000,
    "100,000 levels of arguments": b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
    b'{"name":"echo","arguments":{"text":' + b"[" * 100_000 + b"]" * 100_000 + b"}}}",
    "a long line": b"x" * 3_000_000,
    "a long number": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
}


@pytest.mark.parametrize("greeted", [True, False])
async def test_rubbish_is_answered_and_the_host_lives(piped: Piped, greeted: bool) -> None:
    """Every piece gets an error, the next request its answer, and nothing but messages is on stdout."""
    async with piped(max_message_bytes=1_000_000) as pipes:
        if greeted:
            await pipes.greet()
        for what, rubbish in RUBBISH.items():
            await pipes.send(rubbish)
            answer = await pipes.receive()
            assert "error" in answer, what
            assert "Traceback" not in json.dumps(answer), what
            assert (await pipes.ask("ping", what))["id"] == what
        await pipes.leave()


async def test_answers_to_nothing_and_notifications_of_nothing_are_ignored(piped: Piped) -> None:
    """They get no answer, as JSON-RPC has it."""
    async with piped() as pipes:
        await pipes.greet()
        await pipes.send(
            {"id": 99, "result": {}},
            {"id": None, "error": {"code": 1, "message": "no"}},
            {"method": "no/such"},
            {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}},
            {"method": "notifications/cancelled", "params": {"requestId": 12345}},
            {"method": "notifications/cancelled", "params": {"requestId": []}},
            {"method": "notifications/progress", "params": {"progressToken": 1, "progress": "x"}},
        )
        assert (await pipes.ask("ping", 1)) == {"jsonrpc": "2.0", "id": 1, "result": {}}
        await pipes.leave()
    assert pipes.events("result") == []


async def test_a_call_that_is_cancelled_in_the_same_breath_is_not_answered(piped: Piped) -> None:
    """Whether it has begun by then or not, it does not go on."""
    async with piped() as pipes:
        await pipes.greet()
        for number in range(100):
            call = {"id": number, "method": "tools/call", "params": {"name": "wait"}}
            cancel = {"method": "notifications/cancelled", "params": {"requestId": number, "reason": "never mind"}}
            await _send_at_once(pipes, [call, cancel])
            assert (await pipes.ask("ping", "p"))["id"] == "p"
        await pipes.process.stdin.aclose()
        assert await pipes.rest() == []
    assert {entry["code"] for entry in pipes.events("result")} <= {"ABORTED", "ABORTED_BEFORE_DISPATCH"}


async def test_a_client_that_closes_its_pipes_mid_call_leaves_nothing_running(piped: Piped) -> None:
    """The call is aborted and observed, and the process ends by itself."""
    async with piped() as pipes:
        await pipes.greet()
        assert (await pipes.ask("tools/call", 1, **WAITING))["method"] == "notifications/progress"
        await pipes.leave()
    assert [entry["aborted"] for entry in pipes.events("stopped")] == [True]
    assert [entry["code"] for entry in pipes.events("result")] == ["ABORTED"]
    assert pipes.events("ended") == [{"event": "ended", "threads": ["MainThread"]}]


async def test_a_client_that_reads_no_more_ends_the_session(piped: Piped) -> None:
    """Though it keeps its other pipe open: its calls would run for nobody."""
    async with piped() as pipes:
        await pipes.greet()
        await pipes.ask("tools/call", 1, **WAITING)
        await pipes.process.stdout.aclose()
        await pipes.send({"id": 2, "method": "ping"})
        await pipes.process.wait()
    assert [entry["code"] for entry in pipes.events("result")] == ["ABORTED"]


async def test_a_client_that_closes_only_its_requests_gets_its_answers(piped: Piped) -> None:
    """``printf … | dsh-run mcp`` is a client too; a call that goes on for too long is aborted and not answered."""
    async with piped() as pipes:
        await pipes.greet()
        await pipes.send(
            {"id": 1, "method": "tools/list"},
            {"id": 2, "method": "tools/call", "params": _calling("echo", text="x")},
            {"id": 3, "method": "tools/call", "params": _calling("wait")},
        )
        await pipes.process.stdin.aclose()
        answers = await pipes.rest()
    assert {answer["id"] for answer in answers} == {1, 2}
    assert [entry["code"] for entry in pipes.events("result")] == [None, "ABORTED"]


def test_files_can_stand_in_for_pipes(command: tuple[list[str], Path], tmp_path: Path) -> None:
    """``dsh-run mcp < requests > answers``, for scripts; and with nothing to read there is nothing to do."""
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": _calling("echo", text="from a file")},
    ]
    requests.write_text("".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked))
    for source, count in ((requests, 2), (Path(os.devnull), 0)):
        with source.open() as stdin, answers.open("w") as stdout:
            subprocess.run(command[0], stdin=stdin, stdout=stdout, check=True, timeout=PATIENCE)
        assert len(answers.read_text().splitlines()) == count


async def test_a_client_that_sends_everything_before_it_reads_is_served(piped: Piped) -> None:
    """What it sends fits into the pipes and into what may be unanswered."""
    async with piped() as pipes:
        await pipes.greet()
        requests = [{"id": n, "method": "tools/call", "params": _calling("echo", text="x")} for n in range(4000)]
        await _send_at_once(pipes, requests)
        assert len([await pipes.receive() for _ in requests]) == 4000
        await pipes.leave()


async def test_a_host_that_is_told_to_end_does_so_though_the_client_stays(piped: Piped) -> None:
    """No read that waits for the client keeps the process, and the running call is aborted."""
    async with piped(ends_with=128 + signal.SIGTERM) as pipes:
        await pipes.greet()
        await pipes.ask("tools/call", 1, **WAITING)
        pipes.process.send_signal(signal.SIGTERM)
        with trio.fail_after(5):
            await pipes.process.wait()
    assert [entry["code"] for entry in pipes.events("result")] == ["ABORTED"]
    assert pipes.events("ended") == [{"event": "ended", "threads": ["MainThread"]}]


async def test_a_host_is_told_to_end_while_the_client_does_not_read(piped: Piped) -> None:
    """A write that waits for the client does not keep the process either."""
    async with piped(ends_with=128 + signal.SIGTERM) as pipes:
        await pipes.greet()
        await pipes.send(
            *({"id": n, "method": "tools/call", "params": _calling("grow", size=1_000_000)} for n in range(3))
        )
        assert await pipes.process.stdout.receive_some(1) == b"{"
        pipes.process.send_signal(signal.SIGTERM)
        with trio.fail_after(10):
            await pipes.process.wait()


async def test_a_flood_of_requests_is_answered(piped: Piped) -> None:
    """5,000 pings and 5,000 calls, sent as fast as the pipe takes them: one answer each."""
    async with piped() as pipes:
        await pipes.greet()
        requests: list[dict[str, Any]] = []
        for number in range(5000):
            requests.append({"id": f"p{number}", "method": "ping"})
            requests.append({"id": f"c{number}", "method": "tools/call", "params": _calling("echo", text="x")})
        answered: set[str] = set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_at_once, pipes, requests)
            while len(answered) < len(requests):
                answer = await pipes.receive()
                assert "result" in answer
                answered.add(answer["id"])
        assert answered == {request["id"] for request in requests}
        await pipes.leave()
    results = pipes.events("result")
    assert len({entry["call_id"] for entry in results}) == 5000
    assert len({entry["agent"] for entry in results}) == 1


async def test_a_flood_whose_answers_nobody_reads_is_held_back_and_ends_with_its_client(piped: Piped) -> None:
    """The host takes what it has room for and no more; when the client goes, nothing is left."""
    async with piped(max_pending_requests=50) as pipes:
        await pipes.greet()
        call = {"id": 1, "method": "tools/call", "params": _calling("grow", size=100_000)}
        with trio.move_on_after(1) as scope:
            await _send_at_once(pipes, [{**call, "id": number} for number in range(5000)])
        assert scope.cancelled_caught
        await pipes.leave()
    assert len(pipes.events("result")) <= 100


async def test_a_flood_of_rubbish_is_held_back_too(piped: Piped) -> None:
    """Its answers are not piled up."""
    async with piped() as pipes:
        with trio.move_on_after(1) as scope:
            await pipes.process.stdin.send_all(b"rubbish\n" * 500_000)
        assert scope.cancelled_caught
        await pipes.leave()


async def test_a_client_that_leaves_while_the_host_has_no_room_is_noticed(piped: Piped) -> None:
    """Nothing is read then, and its end of the pipe is looked at all the same."""
    async with piped(max_pending_requests=2) as pipes:
        await pipes.greet()
        await pipes.ask("tools/call", 1, **WAITING)
        await pipes.ask("tools/call", 2, **WAITING)
        await pipes.send({"id": 3, "method": "ping"}, {"id": 4, "method": "ping"})
        await pipes.leave()
    assert [entry["code"] for entry in pipes.events("result")] == ["ABORTED", "ABORTED"]


async def test_nothing_but_messages_reaches_stdout(piped: Piped, tmp_path: Path) -> None:
    """Not from ``print``, nor from a subprocess, nor from C: it all goes to stderr."""
    async with piped() as pipes:
        await pipes.greet()
        result = (await pipes.ask("tools/call", 1, name="chatter"))["result"]
        assert result["structuredContent"] == {"stdin": "", "fds": ["0", "1", "2", "3"]}
        await pipes.process.stdin.aclose()
        assert await pipes.rest() == []
    errors = (tmp_path / "stderr").read_text()
    for source in ("print", "sys.__stdout__", "os.write", "a subprocess", "C"):
        assert f"from {source}" in errors


async def _send_at_once(pipes: Any, requests: list[dict[str, Any]]) -> None:
    lines = [json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n" for request in requests]
    await pipes.process.stdin.send_all(b"".join(lines))


def _calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}
