"""What a client of the SDK's sees of a host, over memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import dsh_plugin_redact
import mcp_types
import pytest
import trio
import trio.testing
from dsh_hookspecs import Deny
from dsh_plugin_mcp_server import _calls
from mcp.shared.message import SessionMessage

Serve = Callable[..., AbstractAsyncContextManager[Any]]
ERAS = ("auto", "legacy")


def words(result: mcp_types.CallToolResult) -> str:
    """The text of the only block."""
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


async def echo(args: Any, exec: Any) -> Any:
    return {"echo": args}


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_gives_content_and_structured_content(serve: Serve, mode: str) -> None:
    """In the protocol of the handshake and in that of 2026."""
    async with serve() as served:
        served.offer("echo", echo)
        async with served.client(mode) as client:
            (tool,) = (await client.list_tools()).tools
            assert (tool.name, tool.description, tool.output_schema) == ("echo", "Tries echo", {"type": "object"})
            result = await client.call_tool("echo", {"a": None})
            assert result.structured_content == {"echo": {"a": None}}
            assert json.loads(words(result)) == {"echo": {"a": None}}
            assert not result.is_error


@pytest.mark.parametrize("mode", ERAS)
async def test_a_call_without_arguments_has_none(serve: Serve, mode: str) -> None:
    """They are an empty object, as the schemas have it."""
    async with serve() as served:
        served.offer("echo", echo)
        async with served.client(mode) as client:
            assert (await client.call_tool("echo")).structured_content == {"echo": {}}


@pytest.mark.parametrize("mode", ERAS)
async def test_every_failure_is_a_tool_error(serve: Serve, mode: str) -> None:
    """What a body raises, a tool that is not there, and what policy denies: each with its content, for the model."""

    async def fail(args: Any, exec: Any) -> Any:
        raise ValueError("boom")

    async with serve() as served:
        served.offer("fail", fail)
        served.offer("secret", echo)
        served.ctx.on("tools/pre-execute", _deny_secret)
        async with served.client(mode) as client:
            for name, part in (("fail", "boom"), ("missing", "missing"), ("secret", "not for you")):
                result = await client.call_tool(name, {})
                assert result.is_error
                assert part in words(result)
                assert result.structured_content is None


async def _deny_secret(exec: Any, next: Callable[[], Any]) -> Any:
    return Deny("not for you") if exec.name == "secret" else await next()


async def test_a_denied_body_does_not_run(serve: Serve) -> None:
    """The front door is no way around policy."""
    ran = []

    async def secret(args: Any, exec: Any) -> Any:
        ran.append(args)

    async with serve() as served:
        served.offer("secret", secret)
        served.ctx.on("tools/pre-execute", _deny_secret)
        async with served.client() as client:
            assert (await client.call_tool("secret", {})).is_error
        assert ran == []
        assert [each.code for each in served.seen] == ["DENIED"]


async def test_calls_have_ids_of_the_sessions_own_and_no_two_the_same(serve: Serve) -> None:
    """The ids of the client's requests, which begin anew in each session, label nothing in the host."""
    async with serve() as served:
        served.offer("echo", echo)
        async with served.client() as one, served.client() as other:
            for client in (one, other, one, other):
                await client.call_tool("echo", {})
        assert len({each.call_id for each in served.seen}) == 4


async def test_each_session_is_one_agent(serve: Serve) -> None:
    """All its calls run on that agent's behalf, and when it is over the agent is gone."""
    async with serve() as served:
        served.offer("echo", echo)
        async with served.client() as one, served.client() as other:
            for client in (one, other, one, other):
                await client.call_tool("echo", {})
        first, second, third, fourth = (each.agent for each in served.seen)
        assert None not in (first, second)
        assert first is third
        assert second is fourth
        assert first is not second


async def test_too_large_and_too_deep_results_become_errors(serve: Serve) -> None:
    """The session goes on."""

    async def large(args: Any, exec: Any) -> Any:
        return {"text": "x" * args["size"]}

    async def deep(args: Any, exec: Any) -> Any:
        value: list[Any] = []
        for _ in range(args["depth"]):
            value = [value]
        return {"value": value}

    async with serve(max_result_bytes=5000, max_result_depth=30) as served:
        served.offer("large", large)
        served.offer("deep", deep)
        async with served.client() as client:
            assert not (await client.call_tool("large", {"size": 1000})).is_error
            assert "more than 5,000" in words(await client.call_tool("large", {"size": 6000}))
            assert not (await client.call_tool("deep", {"depth": 20})).is_error
            result = await client.call_tool("deep", {"depth": 200})
            assert result.is_error
            assert "deeper than 30 levels" in words(result)


async def test_the_sdks_client_reads_results_of_the_default_depth(serve: Serve) -> None:
    """Its parser has a limit of its own, and the default stays below it."""

    async def deep(args: Any, exec: Any) -> Any:
        value: list[Any] = []
        for _ in range(95):
            value = [value]
        return {"value": value}

    async with serve() as served:
        served.offer("deep", deep)
        async with served.client() as client:
            result = await client.call_tool("deep")
            assert not result.is_error
            message = mcp_types.JSONRPCResponse(jsonrpc="2.0", id=1, result=result.model_dump(mode="json"))
            mcp_types.jsonrpc_message_adapter.validate_json(message.model_dump_json())


async def test_blocks_that_mcp_does_not_know_arrive_as_text(serve: Serve) -> None:
    """The client is not made to refuse the result."""
    async with serve() as served:
        served.offer("chart", echo, render=lambda args, value: [{"type": "chart", "points": [1]}])
        async with served.client() as client:
            assert json.loads(words(await client.call_tool("chart"))) == {"type": "chart", "points": [1]}


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_reaches_the_caller_that_asked_for_it(serve: Serve, mode: str) -> None:
    """And nobody else."""
    heard: list[tuple[float, float | None, str | None]] = []
    complete = trio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        if len(heard) == 3:
            complete.set()

    async with serve() as served:
        served.offer("count", count)
        async with served.client(mode) as client:
            await client.call_tool("count", {})
            await client.call_tool("count", {}, progress_callback=on_progress)
            await complete.wait()
    assert sorted(heard) == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def count(args: Any, exec: Any) -> Any:
    for done in (1, 2, 1, float("nan"), float("inf"), 3):
        exec.progress(done, 3, f"step {done}")
    return {}


async def test_progress_is_in_order_and_before_the_result(serve: Serve) -> None:
    """A report that goes back, or is no number, is not sent."""
    async with serve() as served:
        served.offer("count", count)
        async with served.link() as (read, write):
            await write.send(_request("hello", "initialize", _HELLO))
            await read.receive()
            for number in range(20):
                await write.send(_request(number, "tools/call", {"name": "count", "_meta": {"progressToken": number}}))
                told = [(await read.receive()).message for _ in range(4)]
                assert [each.params["progress"] for each in told[:3]] == [1, 2, 3]
                assert {each.params["progressToken"] for each in told[:3]} == {number}
                assert told[3].id == number


async def test_progress_from_a_thread_reaches_the_caller(serve: Serve) -> None:
    """A sync body reports from its worker thread, and is heard while it runs."""
    heard = trio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        heard.set()

    def work(args: Any, exec: Any) -> Any:
        exec.progress(1)
        trio.from_thread.run(heard.wait)
        return {}

    async with serve() as served:
        served.offer("work", work)
        async with served.client() as client:
            assert not (await client.call_tool("work", {}, progress_callback=on_progress)).is_error


async def test_a_change_of_the_tools_is_announced_after_a_handshake(serve: Serve) -> None:
    """Many changes at once are one announcement at least, and after it the list is the new one."""
    changed = trio.Event()

    async def on_message(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            changed.set()

    async with serve() as served, served.client("legacy", message_handler=on_message) as client:
        assert client.server_capabilities.tools.list_changed
        assert (await client.list_tools()).tools == []
        undo = served.offer("one", echo)
        await changed.wait()
        assert [tool.name for tool in (await client.list_tools()).tools] == ["one"]
        changed = trio.Event()
        undo()
        await changed.wait()
        assert (await client.list_tools()).tools == []


async def test_a_change_of_the_tools_is_announced_to_a_listener_of_2026(serve: Serve) -> None:
    """That protocol wants changes on the streams that ask for them."""
    async with serve() as served, served.client() as client:
        async with client.listen(tools_list_changed=True) as changes:
            served.offer("one", echo)
            await anext(aiter(changes))
        assert [tool.name for tool in (await client.list_tools()).tools] == ["one"]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_clients_cancel_aborts_the_call(serve: Serve, mode: str) -> None:
    """The body stops, the observers get ``ABORTED``, the session goes on."""
    begun, stopped = trio.Event(), []

    async def wait(args: Any, exec: Any) -> Any:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            stopped.append(str(exec.signal.reason))

    async with serve() as served:
        served.offer("wait", wait)
        served.offer("echo", echo)
        async with served.client(mode) as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "wait", {})
            await begun.wait()
            nursery.cancel_scope.cancel()
        assert stopped == ["the client cancelled the request"]
        assert [each.code for each in served.seen] == ["ABORTED"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_cancelled_request_makes_room_for_another(serve: Serve, mode: str) -> None:
    """It is never answered, and counts as unanswered no longer."""
    async with serve(max_pending_requests=2, max_concurrent_calls=1) as served:
        begun = trio.Event()

        async def wait(args: Any, exec: Any) -> Any:
            begun.set()
            await trio.sleep_forever()

        served.offer("wait", wait)
        served.offer("echo", echo)
        async with served.client(mode) as client:
            for _ in range(10):
                begun = trio.Event()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(client.call_tool, "wait", {})
                    await begun.wait()
                    nursery.cancel_scope.cancel()
            assert not (await client.call_tool("echo", {})).is_error
    assert [each.code for each in served.seen] == ["ABORTED"] * 10 + [None]


async def test_a_cancelled_call_still_goes_through_its_later_stages(serve: Serve) -> None:
    """It is told by its signal, and not torn out of the pipeline."""
    begun, judged = trio.Event(), []

    async def wait(args: Any, exec: Any) -> Any:
        begun.set()
        await trio.sleep_forever()

    async def judge(exec: Any, result: Any, next: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        judged.append(result.is_error)
        return await next()

    async with serve() as served:
        served.offer("wait", wait)
        served.ctx.on("tools/post-execute", judge)
        async with served.client() as client, trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "wait", {})
            await begun.wait()
            nursery.cancel_scope.cancel()
    assert judged == [True]


async def test_what_does_not_heed_the_signal_is_cancelled_after_a_grace_period(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that never answers cannot hold up the session's end, and the call is observed all the same."""
    monkeypatch.setattr(_calls, "GRACE", 0.2)
    asked = trio.Event()

    async def brood(exec: Any, next: Callable[[], Any]) -> Any:
        asked.set()
        await trio.sleep_forever()

    async with serve() as served:
        served.offer("echo", echo)
        served.ctx.on("tools/pre-execute", brood)
        with trio.fail_after(5):
            async with served.link() as (_, write):
                await write.send(_request(1, "initialize", _HELLO))
                await write.send(_request(2, "tools/call", {"name": "echo"}))
                await asked.wait()
        (seen,) = served.seen
        assert seen.code in ("ABORTED", "ABORTED_BEFORE_DISPATCH")


async def test_a_client_that_leaves_takes_its_calls_along(serve: Serve) -> None:
    """They are aborted and at rest before the session is over."""
    begun, stopped = trio.Event(), trio.Event()

    async def wait(args: Any, exec: Any) -> Any:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            stopped.set()

    async with serve() as served:
        served.offer("wait", wait)
        with trio.fail_after(5):
            async with served.link() as (_, write):
                await write.send(_request(1, "initialize", _HELLO))
                await write.send(_request(2, "tools/call", {"name": "wait"}))
                await begun.wait()
        assert stopped.is_set()
        assert [each.code for each in served.seen] == ["ABORTED"]


async def test_a_server_that_is_cancelled_aborts_its_calls(serve: Serve) -> None:
    """Whoever waits in ``serve`` may be cancelled; nothing stays behind."""
    begun, stopped = trio.Event(), trio.Event()

    async def wait(args: Any, exec: Any) -> Any:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            stopped.set()

    async with serve() as served:
        served.offer("wait", wait)
        with trio.CancelScope() as scope:
            async with served.link() as (_, write):
                await write.send(_request(1, "initialize", _HELLO))
                await write.send(_request(2, "tools/call", {"name": "wait"}))
                await begun.wait()
                scope.cancel()
        assert stopped.is_set()
        assert [each.code for each in served.seen] == ["ABORTED"]


async def test_a_plugin_that_is_unloaded_ends_its_sessions(serve: Serve) -> None:
    """``serve`` returns, and the calls are at rest."""
    begun = trio.Event()

    async def wait(args: Any, exec: Any) -> Any:
        begun.set()
        await trio.sleep_forever()

    async with serve() as served:
        served.offer("wait", wait)
        with trio.fail_after(10):
            async with served.link() as (_, write):
                await write.send(_request(1, "initialize", _HELLO))
                await write.send(_request(2, "tools/call", {"name": "wait"}))
                await begun.wait()
                await served.fiber.dispose()
                assert [each.code for each in served.seen] == ["ABORTED"]


async def test_no_more_calls_run_at_once_than_allowed(serve: Serve) -> None:
    """The next ones wait, and one that is cancelled while it waits never enters."""
    running, most, go = 0, 0, trio.Event()

    async def wait(args: Any, exec: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await go.wait()
        running -= 1
        return {}

    async with serve(max_concurrent_calls=3) as served:
        served.offer("wait", wait)
        async with served.client() as client, trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(client.call_tool, "wait", {})
            await trio.testing.wait_all_tasks_blocked()
            with trio.CancelScope() as scope:
                scope.cancel()
                await client.call_tool("wait", {})
            await trio.testing.wait_all_tasks_blocked()
            go.set()
        assert most == 3
        assert len(served.seen) == 10


async def test_nothing_is_read_while_too_much_is_unanswered(serve: Serve) -> None:
    """Back-pressure: the client's next message stays where it is until there is room."""
    go = trio.Event()

    async def wait(args: Any, exec: Any) -> Any:
        await go.wait()
        return {}

    async with serve(max_pending_requests=2) as served:
        served.offer("wait", wait)
        async with served.link() as (read, write):
            await write.send(_request("hello", "initialize", _HELLO))
            await read.receive()
            for number in range(2):
                await write.send(_request(number, "tools/call", {"name": "wait"}))
            with trio.move_on_after(0.5) as scope:
                for number in range(2, 20):
                    await write.send(_request(number, "ping", {}))
            assert scope.cancelled_caught
            go.set()
            assert {(await read.receive()).message.id for _ in range(2)} == {0, 1}


async def test_an_id_that_is_in_use_is_refused(serve: Serve) -> None:
    """As text or as a number, it is the same id."""
    go = trio.Event()

    async def wait(args: Any, exec: Any) -> Any:
        await go.wait()
        return {}

    async with serve() as served:
        served.offer("wait", wait)
        async with served.link() as (read, write):
            await write.send(_request("hello", "initialize", _HELLO))
            await read.receive()
            await write.send(_request(7, "tools/call", {"name": "wait"}))
            await write.send(_request("7", "tools/call", {"name": "wait"}))
            refusal = (await read.receive()).message
            assert (refusal.id, refusal.error.code) == ("7", mcp_types.INVALID_REQUEST)
            go.set()
            assert (await read.receive()).message.id == 7
        assert len(served.seen) == 1


async def test_no_tool_is_called_before_the_handshake(serve: Serve) -> None:
    """As the protocol has it."""
    async with serve() as served:
        served.offer("echo", echo)
        async with served.link() as (read, write):
            for number, method in enumerate(("tools/list", "tools/call")):
                await write.send(_request(number, method, {"name": "echo"}))
                assert (await read.receive()).message.error.code == mcp_types.INVALID_PARAMS
        assert served.seen == []


@pytest.mark.parametrize(
    "params", [{}, {"name": 1}, {"name": "echo", "arguments": []}, {"name": "echo", "arguments": "x"}]
)
async def test_a_call_of_the_wrong_shape_is_refused(serve: Serve, params: dict[str, Any]) -> None:
    """It never enters the pipeline, and the answer tells nothing of the host."""
    async with serve() as served:
        served.offer("echo", echo)
        async with served.link() as (read, write):
            await write.send(_request("hello", "initialize", _HELLO))
            await read.receive()
            await write.send(_request(1, "tools/call", params))
            error = (await read.receive()).message.error
            assert (error.code, error.message) == (mcp_types.INVALID_PARAMS, "Invalid request parameters")
        assert served.seen == []


_HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}


def _request(request_id: int | str, method: str, params: dict[str, Any]) -> SessionMessage:
    return SessionMessage(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params))


async def test_secrets_in_progress_messages_are_masked(serve: Serve) -> None:
    """Whoever waits for the result sees no more of it on the way."""
    told: list[str | None] = []

    async def leak(args: Any, exec: Any) -> Any:
        exec.progress(1, None, "logging in with password=" + "hunter2")
        return {}

    async def tell(done: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with serve() as served:
        await served.ctx.plugin(dsh_plugin_redact, {}).wait()
        served.offer("leak", leak)
        async with served.client() as client:
            await client.call_tool("leak", {}, progress_callback=tell)
    assert told == ["logging in with password=[redacted: secret]"]
