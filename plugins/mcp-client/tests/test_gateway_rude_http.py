"""Endpoints that do not keep to HTTP, or to the protocol over it."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from gateway_kit import Gateway, code, entry

from dsh_runtime import open_host

MOST = 100_000
HEAD = b"HTTP/1.1 200 OK\r\nconnection: close\r\n"
JSON, EVENTS = b"content-type: application/json\r\n", b"content-type: text/event-stream\r\n"


def whole(body: bytes, headers: bytes = JSON, status: bytes = b"200 OK") -> bytes:
    """A response with its length."""
    head = b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: %d\r\n" % (status, len(body))
    return head + headers + b"\r\n" + body


def answer(request_id: Any, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (request_id, result)


FINE = b'{"content":[{"type":"text","text":"fine"}]}'
#: What an endpoint sends for a call, and the code that the call ends with.
SENT: dict[str, tuple[Callable[[Any], bytes], str | None]] = {
    "an answer": (lambda n: whole(answer(n, FINE)), None),
    "an answer among events": (
        lambda n: HEAD + EVENTS + b"\r\n: hm\n\nevent: x\ndata: 1\n\ndata: " + answer(n, FINE) + b"\n\n",
        None,
    ),
    "a document that is too long": (lambda n: whole(answer(n, FINE) + b" " * MOST), "MCP_PROTOCOL"),
    "an event that is too long": (lambda n: HEAD + EVENTS + b"\r\ndata: " + b"x" * 2 * MOST + b"\n\n", "MCP_PROTOCOL"),
    "a document that is small and large": (
        lambda n: whole(gzip.compress(b" " * 100 * MOST), JSON + b"content-encoding: gzip\r\n"),
        "MCP_REFUSED",
    ),
    "a page": (lambda n: whole(b"<html>", b"content-type: text/html\r\n"), "MCP_PROTOCOL"),
    "another address": (
        lambda n: whole(b"", b"location: http://127.0.0.1:9/x\r\n", b"307 Go"),
        "MCP_REFUSED",
    ),
    "no right": (lambda n: whole(b"no", b"", b"401 No"), "MCP_REFUSED"),
    "a bad request": (lambda n: whole(b"no", b"", b"400 No"), "MCP_REFUSED"),
    "an error of its own": (lambda n: whole(b"no", b"", b"500 No"), "MCP_REFUSED"),
    "an acknowledgement": (lambda n: whole(b"", b"", b"202 Yes"), "MCP_PROTOCOL"),
    "half a document": (lambda n: HEAD + JSON + b"content-length: 500\r\n\r\n{", "MCP_SERVER_GONE"),
    "half a stream": (lambda n: HEAD + EVENTS + b"\r\n: hm\n\n", "MCP_PROTOCOL"),
    "no JSON in an event": (lambda n: HEAD + EVENTS + b"\r\ndata: {\n\n", "MCP_PROTOCOL"),
    "a lone surrogate": (lambda n: whole(answer(n, b'{"content":[{"type":"text","text":"\\ud800"}]}')), "MCP_PROTOCOL"),
    "a number that JSON cannot carry": (
        lambda n: whole(answer(n, b'{"content":[],"structuredContent":{"a":NaN}}')),
        "INVALID_TOOL_OUTPUT",
    ),
    "no HTTP": (lambda n: b"\x00\x01 hello\r\n\r\n", "MCP_SERVER_GONE"),
    "headers without end": (lambda n: b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000, "MCP_SERVER_GONE"),
    "nothing": (lambda n: b"", "MCP_SERVER_GONE"),
    "an answer to somebody else": (lambda n: whole(answer(n + 1000, FINE)), "MCP_TIMEOUT"),
}


class Endpoint:
    """An endpoint with a tool for each thing that it can send. ``sessions`` are the ids that it knows."""

    def __init__(self, unknown: bytes = b"404 No") -> None:
        self.unknown = unknown
        self.sessions: set[str] = set()
        self.greeted = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer one request, and close."""
        async with stream:
            held = b""
            while b"\r\n\r\n" not in held:
                held += await stream.receive_some(65536)
            head, _, body = held.partition(b"\r\n\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
            while len(body) < int(headers.get("content-length", "0")):
                body += await stream.receive_some(65536)
            with suppress(trio.BrokenResourceError):
                await stream.send_all(self.response(head.split()[0], headers.get("mcp-session-id"), body))

    def response(self, method: bytes, session: str | None, body: bytes) -> bytes:
        if method != b"POST":
            return whole(b"", b"", b"405 No")
        message = json.loads(body)
        asked, number = message["method"], message.get("id")
        if asked == "initialize":
            return self.greet(number)
        if session not in self.sessions:
            return whole(b"", b"", self.unknown)
        if asked.startswith("notifications/"):
            return whole(b"", b"", b"202 Yes")
        if asked == "ping":
            return whole(answer(number, b"{}"))
        if asked == "tools/list":
            return whole(answer(number, json.dumps({"tools": [entry(name) for name in SENT]}).encode()))
        return SENT[message["params"]["name"]][0](number)

    def greet(self, number: Any) -> bytes:
        self.greeted += 1
        self.sessions.add(f"s{self.greeted}")
        info = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": ""},
        }
        return whole(answer(number, json.dumps(info).encode()), JSON + b"mcp-session-id: s%d\r\n" % self.greeted)


@asynccontextmanager
async def behind(endpoint: Endpoint, folder: Path, **more: Any) -> AsyncIterator[Gateway]:
    """A host with the endpoint behind it."""
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, endpoint.serve, 0, host="127.0.0.1"))
        config = {
            "url": f"http://127.0.0.1:{listener.socket.getsockname()[1]}/mcp",
            "fingerprints": str(folder / "f.json"),
            "protocol": "legacy",
            "max_message_bytes": MOST,
            **more,
        }
        rows = [{"id": "far", "use": "mcp-client", "config": config}]
        async with open_host({"host": {"log": {"enabled": False}}, "plugin": rows}) as host:
            yield Gateway(host, "far", folder)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", SENT)
async def test_what_an_endpoint_sends_harms_its_own_call_at_most(tmp_path: Path, name: str) -> None:
    async with behind(Endpoint(), tmp_path, call_timeout=0.5 if SENT[name][1] == "MCP_TIMEOUT" else 10) as gate:
        assert code(await gate.call(name)) == SENT[name][1]
        if SENT[name][1] == "MCP_SERVER_GONE":
            await gate.until(lambda: gate.names() == [])
        await gate.until(lambda: "an answer" in gate.names())
        assert code(await gate.call("an answer")) is None


@pytest.mark.parametrize("status", [b"404 No", b"400 No"])
async def test_an_endpoint_that_has_forgotten_the_session_is_greeted_again(tmp_path: Path, status: bytes) -> None:
    endpoint = Endpoint(status)
    async with behind(endpoint, tmp_path) as gate:
        endpoint.sessions.clear()
        assert code(await gate.call("an answer")) == "MCP_SERVER_GONE"
        await gate.until(lambda: endpoint.greeted == 2 and "an answer" in gate.names())
        assert code(await gate.call("an answer")) is None


async def test_an_endpoint_that_refuses_a_request_keeps_its_session(tmp_path: Path) -> None:
    endpoint = Endpoint()
    async with behind(endpoint, tmp_path) as gate:
        assert code(await gate.call("a bad request")) == "MCP_REFUSED"
        assert code(await gate.call("an answer")) is None
    assert endpoint.greeted == 1


async def test_a_status_is_told(tmp_path: Path) -> None:
    async with behind(Endpoint(), tmp_path) as gate:
        assert "status 401" in (await gate.call("no right")).error.message
