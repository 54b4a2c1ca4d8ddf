"""A client of streamable HTTP that costs little: sockets, JSON, and no more of HTTP than a server under load needs.

The SDK's client takes several times what a gateway takes for the same call, so that a load made with it alone measures
the clients. This one speaks both eras, reads an answer to its end, and counts every answer in it.
"""

from __future__ import annotations

import json
from typing import Any, Final

import trio
from attrs import define, field

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
_ME: Final = {"name": "lean", "version": "1"}
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": _ME,
}


class WrongAnswerError(Exception):
    """The server has answered with something that is not the answer."""


@define
class Response:
    """One response: its status, its headers in lower case, its body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def answers(self) -> list[Any]:
        """The messages of the body that are answers."""
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            return [json.loads(self.body)] if self.body else []
        data = (line[5:] for line in self.body.splitlines() if line.startswith(b"data:"))
        return [message for line in data if line.strip() and "method" not in (message := json.loads(line))]


@define
class Wire:
    """One connection, which is kept open; one request at a time."""

    host: str
    port: int
    path: str
    _stream: trio.SocketStream | None = None
    _held: bytearray = field(factory=bytearray)

    async def post(self, body: bytes, headers: str) -> Response:
        """The response to one request."""
        if self._stream is None:
            self._stream = await trio.open_tcp_stream(self.host, self.port)
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
        )
        await self._stream.send_all(head.encode() + body)
        return await self._response()

    async def _response(self) -> Response:
        lines = (await self._until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        fields = (line.partition(":") for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in fields}
        chunked = headers.get("transfer-encoding") == "chunked"
        body = await self._chunks() if chunked else await self._exactly(int(headers.get("content-length", 0)))
        return Response(int(lines[0].split()[1]), headers, body)

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._until(b"\r\n"), 16):
            parts.append((await self._exactly(size + 2))[:-2])
        await self._until(b"\r\n")
        return b"".join(parts)

    async def _until(self, end: bytes) -> bytes:
        while (place := self._held.find(end)) < 0:
            await self._more()
        return self._take(place + len(end))

    async def _exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            await self._more()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    async def _more(self) -> None:
        assert self._stream is not None
        chunk = await self._stream.receive_some(65536)
        if not chunk:
            raise WrongAnswerError("the connection was closed before the answer was there")
        self._held += chunk


@define
class LeanClient:
    """One session; calls in flight at once need a :class:`Wire` each."""

    host: str
    port: int
    path: str
    modern: bool
    _headers: str = ""
    _asked: int = 0

    def wire(self) -> Wire:
        """A connection for this session."""
        return Wire(self.host, self.port, self.path)

    async def open(self) -> None:
        """Shake hands, if the protocol has that."""
        if self.modern:
            return
        wire = self.wire()
        params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _ME}
        response = await wire.post(self._request("initialize", params)[1], "")
        self._headers = f"mcp-session-id: {response.headers['mcp-session-id']}\r\nmcp-protocol-version: {LEGACY}\r\n"
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await wire.post(json.dumps(done).encode(), self._headers)).status == 202

    async def call(self, wire: Wire, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The result of one call; :class:`WrongAnswerError` unless exactly one answer came, and for this call."""
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        headers = self._headers
        if self.modern:
            params["_meta"] = _META
            headers = f"mcp-protocol-version: {MODERN}\r\nmcp-method: tools/call\r\nmcp-name: {name}\r\n"
        number, body = self._request("tools/call", params)
        response = await wire.post(body, headers)
        answers = response.answers()
        if [answer.get("id") for answer in answers] != [number]:
            raise WrongAnswerError(f"status {response.status}, {len(answers)} answers: {response.body[:200]!r}")
        if "result" not in answers[0]:
            raise WrongAnswerError(f"error {answers[0]['error']}")
        result: dict[str, Any] = answers[0]["result"]
        return result

    def _request(self, method: str, params: Any) -> tuple[int, bytes]:
        self._asked += 1
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        return self._asked, json.dumps(message).encode()
