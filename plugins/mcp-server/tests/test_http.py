"""Streamable HTTP: what is served, to whom, and what is refused with which status."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from dsh_hookspecs import HarnessError
from dsh_plugin_mcp_server._http.desk import Desk
from dsh_plugin_mcp_server._http.origins import host_allowed, is_loopback, origin_allowed
from dsh_plugin_mcp_server._http.tokens import TokenFileError, parse_tokens
from dsh_plugin_mcp_server._wire import ReceivedMessage
from http_kit import MODERN, PATIENCE, Served, hello, modern, serving
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

DSH_RUN = Path(sys.executable).with_name("dsh-run")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_lists_and_calls(tmp_path: Path, mode: Any) -> None:
    async with serving(tmp_path) as (served, _), served.client(mode=mode) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"echo", "wait", "steps", "whoami"}
        result = await client.call_tool("echo", {"a": 1})
        assert result.structured_content == {"a": 1}
        assert (await client.call_tool("nothing", {})).is_error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_progress_comes_before_the_result(tmp_path: Path, mode: Any) -> None:
    heard: list[Any] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with serving(tmp_path) as (served, _), served.client(mode=mode) as client:
        await client.call_tool("steps", {}, progress_callback=hear)
    assert heard == [(1, 2, "step 1"), (2, 2, "step 2")]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_gives_up_a_call_aborts_it(tmp_path: Path, mode: Any) -> None:
    async with serving(tmp_path) as (served, _), served.client(mode=mode) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.call_tool, "wait", {})
            await served.tools.has_begun()
            nursery.cancel_scope.cancel()
        with trio.fail_after(PATIENCE):
            while not served.tools.seen:  # noqa: ASYNC110 - another task makes it so
                await trio.sleep(0.01)
        assert served.tools.seen[0][2] == "ABORTED"


async def test_changes_of_the_tools_are_told(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as (served, _),
        served.client() as client,
        client.listen(tools_list_changed=True) as changes,
    ):
        definition = served.tools.ctx.tools.get("echo")
        served.tools.ctx.tools.register(type(definition)(**{**_parts(definition), "name": "later"}))
        with trio.fail_after(PATIENCE):
            await anext(aiter(changes))


def _parts(definition: Any) -> dict[str, Any]:
    return {key: getattr(definition, key) for key in ("name", "description", "parameters", "output", "execute")}


# Who comes in


async def test_every_token_is_a_scope_and_every_session_one_below_it(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one", "two")) as (served, (one, two)):
        agents = []
        for token in (one, two, two):
            async with served.client(token, mode="legacy") as client:
                agents.append((await client.call_tool("whoami", {})).content[0].text)
        assert len(set(agents)) == 3


async def test_the_agent_of_a_call_says_whose_token_it_came_with(tmp_path: Path) -> None:
    """An audit file knows agents by the text of their keys."""
    async with serving(tmp_path, ("one", "two")) as (served, tokens):
        for name, token in zip(("one", "two"), tokens, strict=True):
            async with served.client(token) as client:
                agent = (await client.call_tool("whoami", {})).content[0].text
                assert agent.startswith(f"<mcp client '{name}' 0x")


async def test_the_config_of_a_token_restricts_and_guards_it_alone(tmp_path: Path) -> None:
    clients = {
        "narrow": {"allow": ["echo"]},
        "shy": {"deny": ["echo"]},
        "watched": {"guards": ["trial_guards:nothing_goes"]},
    }
    sys.path.insert(0, str(tmp_path))
    (tmp_path / "trial_guards.py").write_text("def nothing_goes(exec):\n    return 'nothing goes'\n")
    names = ("narrow", "shy", "watched", "free")
    async with serving(tmp_path, names, clients=clients) as (served, tokens):
        seen = {}
        for name, token in zip(names, tokens, strict=True):
            async with served.client(token) as client:
                listed = {tool.name for tool in (await client.list_tools()).tools}
                seen[name] = (listed, (await client.call_tool("echo", {})).is_error)
    everything = {"echo", "wait", "steps", "whoami"}
    assert seen == {
        "narrow": ({"echo"}, False),
        "shy": (everything - {"echo"}, True),
        "watched": (everything, True),
        "free": (everything, False),
    }


@pytest.mark.parametrize(
    "config", [{"allow": ["no-such"]}, {"guards": ["no.such:guard"]}, {"guards": ["json:__doc__"]}]
)
async def test_a_config_of_a_token_that_cannot_be_applied_stops_the_start(tmp_path: Path, config: Any) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with serving(tmp_path, ("one",), clients={"one": config}):
            pass
    assert caught.group_contains(HarnessError, match="client 'one'")


async def test_a_token_without_the_right_to_call_calls_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one",)) as (served, (token,)):
        served.tokens.write_text(served.tokens.read_text().replace(', "call"', "").replace('"call", ', ""))
        async with served.client(token) as client:
            assert (await client.list_tools()).tools
            assert (await client.call_tool("echo", {})).is_error


@pytest.mark.parametrize(
    "authorization", [None, b"Bearer wrong", b"Bearer " + b"x" * 10_000, b"Bearer dsh_\xfc", b"Basic x", b"Bearer"]
)
async def test_a_token_that_is_none_is_refused(tmp_path: Path, authorization: bytes | None) -> None:
    async with serving(tmp_path, ("one",)) as (served, _):
        headers = [("authorization", authorization)] if authorization is not None else []
        async with httpx2.AsyncClient(trust_env=False) as http:
            response = await http.post(served.url, json=hello(), headers=[*served.headers().items(), *headers])
        assert response.status_code == 401
        assert "www-authenticate" in response.headers


async def test_two_tokens_are_none(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one", "two")) as (served, tokens), httpx2.AsyncClient(trust_env=False) as http:
        headers = [("authorization", f"Bearer {token}") for token in tokens]
        response = await http.post(served.url, json=hello(), headers=[*served.headers().items(), *headers])
        assert response.status_code == 401


async def test_a_revoked_token_loses_its_sessions_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one", "two")) as (served, (one, two)):
        first = await served.post(hello(), one)
        session = first.headers["mcp-session-id"]
        served.tokens.write_text("\n[[token]]" + served.tokens.read_text().split("[[token]]")[2])
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await served.post(ping, one, mcp_session_id=session)).status_code == 401
        assert (await served.post(hello(), two)).status_code == 200
        served.tokens.write_text("rubbish")
        assert (await served.post(hello(), two)).status_code == 503


async def test_somebody_elses_session_is_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one", "two")) as (served, (one, two)):
        session = (await served.post(hello(), one)).headers["mcp-session-id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await served.post(ping, two, mcp_session_id=session)).status_code == 404
        assert (await served.post(ping, one, mcp_session_id="0" * 32)).status_code == 404
        assert (await served.post(ping, one, mcp_session_id=session)).status_code == 200


# Sessions with a handshake


async def greeted(served: Served, token: str | None = None, **capabilities: Any) -> dict[str, str]:
    """A session that is open; the headers that name it."""
    hands = hello()
    hands["params"]["capabilities"] = capabilities
    session = (await served.post(hands, token)).headers["mcp-session-id"]
    await served.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, token, mcp_session_id=session)
    return {"mcp_session_id": session}


def calling(name: str, request_id: Any = 7, **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


async def test_a_result_over_http_goes_out_as_it_is(tmp_path: Path) -> None:
    given = {"z": 1, "a": 10**30, "none": None, "f": 1.0}
    async with serving(tmp_path) as (served, _):
        session = await greeted(served)
        answer = (await served.post(calling("echo", **given), **session)).json()
        assert json.dumps(answer["result"]["structuredContent"]) == json.dumps(given)


async def test_an_id_that_is_in_use_is_refused_and_the_first_request_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, _), trio.open_nursery() as nursery:
        session = await greeted(served)
        nursery.start_soon(lambda: served.post(calling("wait"), **session))
        await served.tools.has_begun()
        assert (await served.post(calling("echo"), **session)).status_code == 400
        assert (await served.post(calling("echo", "7x"), **session)).json()["id"] == "7x"
        await served.post(cancelling(7), **session)


def cancelling(request_id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}


async def test_a_request_that_is_cancelled_is_not_left_open(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, _), trio.open_nursery() as nursery:
        session = await greeted(served)
        answers: list[Any] = []

        async def ask() -> None:
            answers.append((await served.post(calling("wait"), **session)).json())

        nursery.start_soon(ask)
        await served.tools.has_begun()
        assert (await served.post(cancelling(7), **session)).status_code == 202
    assert answers[0]["error"]["message"] == "Request cancelled"
    assert served.tools.seen[0][2] == "ABORTED"


async def test_a_client_that_goes_away_does_not_cancel_its_request(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, _), trio.open_nursery() as nursery:
        session = await greeted(served)
        async with trio.open_nursery() as client:
            client.start_soon(lambda: served.post(calling("wait"), **session))
            await served.tools.has_begun()
            client.cancel_scope.cancel()
        assert (await served.post(calling("echo", 8), **session)).status_code == 200
        assert not [seen for seen in served.tools.seen if seen[0] == "wait"]
        await served.post(cancelling(7), **session)
        nursery.cancel_scope.cancel()


async def test_what_concerns_no_request_comes_on_the_standing_stream_of_which_there_is_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, _), httpx2.AsyncClient(trust_env=False) as http:
        session = await greeted(served)
        headers = served.headers(**session)
        async with http.stream("GET", served.url, headers=headers) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert (await http.get(served.url, headers=headers)).status_code == 409
            definition = served.tools.ctx.tools.get("echo")
            served.tools.ctx.tools.register(type(definition)(**{**_parts(definition), "name": "later"}))
            with trio.fail_after(PATIENCE):
                lines = [line async for line in _until(stream.aiter_lines(), "data:")]
            assert json.loads(lines[-1][5:])["method"] == "notifications/tools/list_changed"


async def _until(lines: Any, start: str) -> Any:
    async for line in lines:
        yield line
        if line.startswith(start):
            return


async def test_a_method_that_is_not_known_is_an_error_of_the_protocol(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, _):
        session = await greeted(served)
        response = await served.post({"jsonrpc": "2.0", "id": 8, "method": "no/such"}, **session)
        assert (response.status_code, response.json()["error"]["code"]) == (200, -32601)


async def test_a_client_that_does_not_read_loses_its_stream_and_nobody_elses() -> None:
    desk = Desk()
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call")
    news = JSONRPCNotification(jsonrpc="2.0", method="notifications/tools/list_changed")
    about = ServerMessageMetadata(related_request_id=1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.transport.read.receive)
        async with desk.posted(ReceivedMessage(request), request) as letter:
            with desk.standing() as standing:
                for _ in range(1000):
                    desk.take(SessionMessage(news))
                    desk.take(SessionMessage(news, about))
                for came in (letter.came, standing):
                    heard = [message async for message in came]
                    assert len(heard) == 256


async def test_a_session_that_has_ended_is_not_there(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, _), httpx2.AsyncClient(trust_env=False) as http:
        session = await greeted(served)
        headers = served.headers(**session)
        assert (await http.delete(served.url, headers=headers)).status_code == 204
        assert (await http.delete(served.url, headers=headers)).status_code == 404
        assert (await served.post(calling("echo"), **session)).status_code == 404


async def test_a_session_that_ends_answers_what_it_was_asked(tmp_path: Path) -> None:
    async with serving(tmp_path) as (served, _), httpx2.AsyncClient(trust_env=False) as http:
        session = await greeted(served)
        statuses: list[int] = []

        async def ask() -> None:
            statuses.append((await served.post(calling("wait"), **session)).status_code)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await served.tools.has_begun()
            await http.delete(served.url, headers=served.headers(**session))
        assert statuses == [404]
        assert served.tools.seen[0][2] == "ABORTED"


async def test_a_users_answer_comes_as_a_message_of_the_session(tmp_path: Path) -> None:
    ask = {"id": "gate", "use": "permission-gate", "config": {"default": "ask"}}
    async with serving(tmp_path, rows=[ask]) as (served, _), httpx2.AsyncClient(trust_env=False) as http:
        session = await greeted(served, elicitation={})
        headers, content = served.headers(**session), json.dumps(calling("echo", a=1))
        with trio.fail_after(PATIENCE):
            async with http.stream("POST", served.url, content=content, headers=headers) as stream:
                lines = stream.aiter_lines()
                question = json.loads([line async for line in _until(lines, "data:")][-1][5:])
                assert question["method"] == "elicitation/create"
                said = {"action": "accept", "content": {"decision": "allow once"}}
                answer = {"jsonrpc": "2.0", "id": question["id"], "result": said}
                assert (await served.post(answer, **session)).status_code == 202
                result = json.loads([line async for line in _until(lines, "data:")][-1][5:])
    assert result["result"]["structuredContent"] == {"a": 1}


async def test_ids_and_progress_of_one_client_do_not_reach_another(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one",)) as (served, (token,)):
        request = modern("tools/call", "same", name="steps", arguments={}, _meta={"progressToken": "mine"})
        headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": "steps"}
        responses: list[Any] = []

        async def ask() -> None:
            responses.append(await served.post(request, token, **headers))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        for response in responses:
            events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
            assert [event["params"]["progressToken"] for event in events[:-1]] == ["mine", "mine"]
            assert (events[-1]["id"], len(events)) == ("same", 3)


# What is refused


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.test"}, 421),
        ({"host": "127.0.0.1.evil.test"}, 421),
        ({"origin": "http://evil.test"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
    ],
)
async def test_a_forged_host_or_origin_is_refused(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    async with serving(tmp_path) as (served, _):
        assert (await served.post(hello(), **headers)).status_code == status


def test_names_of_this_machine_are_known() -> None:
    assert all(host_allowed(host, ()) for host in ("localhost", "127.0.0.1:80", "[::1]:80", "LOCALHOST:1"))
    assert not any(host_allowed(host, ()) for host in (None, "", "x", "localhost.x", "127.0.0.1@x"))
    assert host_allowed("gate.test:1", ("gate.test",))
    assert host_allowed("gate.test:1", ("gate.test:1",))
    assert not host_allowed("gate.test:2", ("gate.test:1",))
    assert origin_allowed("https://gate.test", ("https://gate.test",))
    assert not origin_allowed("file://localhost", ())
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")


@pytest.mark.parametrize("stated", [True, False])
async def test_a_body_that_is_too_large_is_refused(tmp_path: Path, stated: bool) -> None:
    async with serving(tmp_path, plugin={"max_message_bytes": 2000}) as (served, _):
        body = b" " * 5000

        async def pieces() -> Any:
            yield body

        async with httpx2.AsyncClient(trust_env=False) as http:
            content = body if stated else pieces()
            response = await http.post(served.url, content=content, headers=served.headers())
        assert response.status_code == 413


async def test_a_body_that_is_too_slow_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path, body_timeout=0.1) as (served, _):
        host, port = served.url.split("/")[2].split(":")
        stream = await trio.open_tcp_stream(host, int(port))
        async with stream:
            await stream.send_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{")
            with trio.fail_after(PATIENCE):
                assert b" 408 " in await stream.receive_some(1000)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"not json", {}, 400),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, {}, 400),
        (b"not json", {"mcp_protocol_version": MODERN}, 400),
        (b"[" * 100_000, {"mcp_protocol_version": MODERN}, 400),
        ([], {"mcp_protocol_version": MODERN}, 400),
        ({"jsonrpc": "2.0", "id": {}, "method": "x"}, {"mcp_protocol_version": MODERN}, 400),
        (modern("tools/list"), {"mcp_protocol_version": MODERN, "mcp_method": "tools/call"}, 400),
        (modern("tools/list"), {"mcp_protocol_version": "2199-01-01", "mcp_method": "tools/list"}, 400),
        (modern("no/such"), {"mcp_protocol_version": MODERN, "mcp_method": "no/such"}, 404),
        ({"jsonrpc": "2.0", "method": "x"}, {"mcp_protocol_version": MODERN}, 202),
    ],
)
async def test_a_request_that_is_none_is_refused(
    tmp_path: Path, body: Any, headers: dict[str, str], status: int
) -> None:
    async with serving(tmp_path) as (served, _):
        assert (await served.post(body, **headers)).status_code == status
        assert (await served.post(hello())).status_code == 200


async def test_sessions_are_bounded(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one", "two"), max_sessions=3, max_sessions_per_client=2) as (served, (one, two)):
        assert [(await served.post(hello(), one)).status_code for _ in range(3)] == [200, 200, 429]
        assert [(await served.post(hello(), two)).status_code for _ in range(2)] == [200, 503]


async def test_a_session_that_is_not_used_ends(tmp_path: Path) -> None:
    async with serving(tmp_path, max_sessions=1, session_timeout=0.2) as (served, _):
        assert (await served.post(hello())).status_code == 200
        with trio.fail_after(PATIENCE):
            while (await served.post(hello())).status_code != 200:  # noqa: ASYNC110 - a clock is waited for
                await trio.sleep(0.05)


async def test_a_session_ends_when_its_client_says_so(tmp_path: Path) -> None:
    async with serving(tmp_path, max_sessions=1) as (served, _):
        for _ in range(3):
            session = (await served.post(hello())).headers["mcp-session-id"]
            async with httpx2.AsyncClient(trust_env=False) as http:
                await http.delete(served.url, headers=served.headers(mcp_session_id=session))


async def test_requests_at_once_are_bounded(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, max_requests=1) as (served, _),
        served.client() as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.call_tool, "wait", {})
        await served.tools.has_begun()
        assert (await served.post(hello())).status_code == 503
        nursery.cancel_scope.cancel()


async def test_health_and_readiness_need_no_token(tmp_path: Path) -> None:
    async with serving(tmp_path, ("one",)) as (served, _), httpx2.AsyncClient(trust_env=False) as http:
        base = served.url.removesuffix("/mcp")
        assert (await http.get(f"{base}/healthz")).status_code == 200
        assert (await http.get(f"{base}/readyz")).status_code == 200
        served.tokens.write_text("rubbish")
        assert (await http.get(f"{base}/readyz")).status_code == 503
        assert (await http.get(f"{base}/other")).status_code == 404


async def test_without_tokens_only_loopback_is_listened_on(tmp_path: Path) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with serving(tmp_path, server={"host": "0.0.0.0"}):
            pass
    assert caught.group_contains(HarnessError, match="without tokens")


@pytest.mark.parametrize(
    "text",
    [
        "rubbish",
        "a = 1",
        "token = 1",
        "[[token]]",
        '[[token]]\nname = "a b"\nhash = "sha256:' + "0" * 64 + '"',
        '[[token]]\nname = "a"\nhash = "plain"',
        '[[token]]\nname = "a"\nhash = "sha256:' + "0" * 64 + '"\nrights = ["all"]',
        ('[[token]]\nname = "a"\nhash = "sha256:' + "0" * 64 + '"\n') * 2,
    ],
)
def test_a_file_of_tokens_that_cannot_be_used_lets_nobody_in(text: str) -> None:
    with pytest.raises(TokenFileError):
        parse_tokens(text)


# The end


async def test_what_runs_may_end_when_the_server_stops(tmp_path: Path) -> None:
    async with serving(tmp_path, graceful_timeout=0.2) as (served, _):
        results: list[Any] = []

        async def call() -> None:
            async with served.client() as client:
                results.append(await client.call_tool("wait", {}))

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_contained, call)
                await served.tools.has_begun()
                served.stop()
                await trio.lowlevel.checkpoint()
                with contextlib.suppress(httpx2.TransportError):
                    assert (await served.post(hello())).status_code == 503
    assert served.tools.seen[0][2] == "ABORTED"


async def _contained(call: Any) -> None:
    with contextlib.suppress(Exception):
        await call()


def test_the_server_is_started_and_stopped_as_a_command(tmp_path: Path) -> None:
    secret = subprocess.run(
        [DSH_RUN, "token", "ci", "--file", tmp_path / "tokens.toml"], capture_output=True, text=True, check=True
    ).stdout.strip()
    (tmp_path / "dsh.toml").write_text(
        '[host.log]\nenabled = false\n[[plugin]]\nid = "greet"\nuse = "greet"\n[[plugin]]\nid = "mcp-server"\n'
        'use = "mcp-server"\n[plugin.config.http]\nport = 0\ntokens = "tokens.toml"\n'
    )
    command = [DSH_RUN, "-c", "dsh.toml", "mcp", "--http"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            url = process.stderr.readline().split()[-1]
            headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {secret}"}
            response = httpx2.post(url, json=hello(), headers=headers, trust_env=False)
            assert response.status_code == 200
        finally:
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
            code = process.wait(PATIENCE)
    assert code == 143, rest
