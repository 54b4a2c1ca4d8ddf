"""What comes over a socket that no well-behaved client would send: the status of each, and that the server lives on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from dsh_plugin_mcp_server._http import listen
from dsh_plugin_mcp_server._http.refusals import Refusals
from dsh_plugin_mcp_server._http.replies import Message
from http_kit import MODERN, PATIENCE, Served, hello, modern, serving

HELLO = json.dumps(hello()).encode()
LINE = b"POST /mcp HTTP/1.1\r\n"
HOST = b"host: localhost\r\n"
KINDS = b"accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"


def post(body: bytes = HELLO, headers: bytes = b"", kinds: bytes = KINDS, line: bytes = LINE) -> bytes:
    """A whole request."""
    return line + HOST + kinds + headers + b"content-length: %d\r\n\r\n" % len(body) + body


def changed(before: bytes, after: bytes) -> bytes:
    return HELLO.replace(before, after)


NOW = f"mcp-protocol-version: {MODERN}\r\nmcp-method: tools/list\r\n".encode()
SENT: dict[str, tuple[bytes, int]] = {
    "a handshake": (post(), 200),
    "no host": (LINE + KINDS + b"content-length: 0\r\n\r\n", 400),
    "two hosts": (post(headers=b"host: localhost\r\n"), 400),
    "two origins": (post(headers=b"origin: http://localhost\r\norigin: http://evil\r\n"), 403),
    "headers too large": (post(headers=b"x: " + b"y" * 200_000 + b"\r\n"), 431),
    "no chunk": (LINE + HOST + KINDS + b"transfer-encoding: chunked\r\n\r\nZZ\r\n", 400),
    "a negative length": (LINE + HOST + KINDS + b"content-length: -5\r\n\r\n", 400),
    "two lengths": (LINE + HOST + KINDS + b"content-length: 5\r\ncontent-length: 6\r\n\r\n", 400),
    "an endless length": (LINE + HOST + KINDS + b"content-length: " + b"9" * 30 + b"\r\n\r\n", 400),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400),
    "a control character": (post(headers=b"x: a\x00b\r\n"), 400),
    "a websocket": (
        b"GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        403,
    ),
    "another method": (post(line=b"OPTIONS /mcp HTTP/1.1\r\n"), 405),
    "another path": (post(line=b"POST /mcp/../healthz HTTP/1.1\r\n"), 404),
    "no accept": (post(kinds=b"content-type: application/json\r\n"), 406),
    "json alone accepted": (post(kinds=b"accept: application/json\r\ncontent-type: application/json\r\n"), 406),
    "events alone accepted": (post(kinds=b"accept: text/event-stream\r\ncontent-type: application/json\r\n"), 406),
    "a form": (post(kinds=b"accept: */*\r\ncontent-type: text/plain\r\n"), 415),
    "a batch": (post(b"[" + HELLO + b"]"), 400),
    "a number that JSON cannot carry": (post(changed(b'"trial"', b"NaN")), 400),
    "a lone surrogate": (post(changed(b"trial", b"\\ud800")), 400),
    "another encoding": (post(HELLO.decode().encode("utf-16")), 400),
    "nested too deep": (post(changed(b'"capabilities": {}', b'"capabilities": ' + b"[" * 99_999 + b"]" * 99_999)), 400),
    "an id that is none": (post(changed(b'"id": 1', b'"id": 1.5')), 400),
    "no handshake": (post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()), 400),
    "a session that is none": (post(headers=b"mcp-session-id: \xff\xfe\r\n"), 404),
    "a stream without a session": (b"GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n", 400),
    "the end of no session": (b"DELETE /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n", 400),
    "a request without its headers": (post(json.dumps(modern("ping")).encode(), NOW), 400),
    "a stream of 2026": (b"GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n" + NOW + b"\r\n", 405),
}


#: What hypercorn refuses, or is told of no error.
BEFORE_THE_SERVER = {
    *("no host", "two hosts", "headers too large", "no chunk", "a negative length", "two lengths"),
    *("an endless length", "no HTTP", "a control character", "a websocket"),
}


@asynccontextmanager
async def socket(served: Served) -> AsyncIterator[trio.SocketStream]:
    """A connection to the server."""
    host, port = served.url.split("/")[2].split(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        yield stream


async def status_of(stream: trio.SocketStream) -> int:
    """The status of the next response."""
    held = b""
    with trio.fail_after(PATIENCE):
        while b"\r\n" not in held:
            held += await stream.receive_some(1000)
    return int(held.split()[1])


@pytest.mark.parametrize("name", SENT)
async def test_whatever_comes_has_a_status_and_the_server_lives_on(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent, status = SENT[name]
    async with serving(tmp_path) as (served, _):
        async with socket(served) as stream:
            await stream.send_all(sent)
            assert await status_of(stream) == status
        assert (await served.post(hello())).status_code == 200
    told = [record.getMessage() for record in caplog.records]
    if status >= 400 and name not in BEFORE_THE_SERVER:
        assert any(line.startswith("refused a request of 127.0.0.1") and f"with {status}" in line for line in told)
    assert "Traceback" not in caplog.text


async def test_a_flood_of_refusals_is_told_in_a_bounded_number_of_lines(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def nowhere(message: Message) -> None:
        return

    refusals = Refusals()

    async def refuse() -> None:
        send = refusals.noting({"client": ("192.0.2.1", 7)}, nowhere)
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"no\x1b[31m\n"})

    for _ in range(200):
        await refuse()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 50
    assert lines[0].startswith("refused a request of 192.0.2.1:7 with 401: no")
    assert lines[0].isprintable()
    await trio.sleep(1)
    await refuse()
    assert "refused 150 more requests" in caplog.text


@pytest.mark.parametrize("begun", [b"", b"POST /mcp HT", LINE + HOST])
async def test_a_request_that_is_not_finished_is_given_up(
    tmp_path: Path, begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "_KEEP_ALIVE", 0.2)
    async with serving(tmp_path) as (served, _), socket(served) as stream:
        await stream.send_all(begun)
        with trio.fail_after(PATIENCE):
            assert await stream.receive_some(1000) == b""


async def test_bodies_under_way_count_as_requests(tmp_path: Path) -> None:
    async with serving(tmp_path, max_requests=1) as (served, _), socket(served) as stream:
        await stream.send_all(LINE + HOST + KINDS + b"content-length: 10\r\n\r\n{")
        with trio.fail_after(PATIENCE):
            while (await served.post(hello())).status_code != 503:
                pass
        await stream.aclose()
        with trio.fail_after(PATIENCE):
            while (await served.post(hello())).status_code != 200:
                pass
