"""The two streams that the SDK speaks over, for a server at the other end of two pipes.

Strategy: no queue stands between the pipes and the SDK. A line that is no message is counted and passed over; a line
that is too long, or too much rubbish, ends the stream, since the answer that somebody waits for may have been in it.
"""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from typing import Final, Self

import anyio
import trio
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from dsh_plugin_mcp_client._closing import ClosingStream
from dsh_plugin_mcp_client._errors import McpProtocolError
from dsh_plugin_mcp_client._lines import Lines

_log = logging.getLogger(__name__)
_CHUNK: Final = 65536
#: Marks an error that no server sent.
NO_ANSWER: Final = object()
#: How an answer begins, as servers write it; the ids are the SDK's, and it counts.
_ANSWER: Final = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"'
)
#: So many lines that are no messages, and the server is given up.
_RUBBISH: Final = 100


class MessageReader(ClosingStream):
    """The messages that a server writes, one a line. ``fault`` says why the stream ended, if not by itself."""

    def __init__(self, pipe: trio.abc.ReceiveStream, max_message_bytes: int) -> None:
        self._pipe = pipe
        self._lines = Lines(max_message_bytes)
        self._ready: deque[SessionMessage] = deque()
        self._rubbish = 0
        self.fault: McpProtocolError | None = None
        self.ended = trio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage | Exception:
        """The next message; ``EndOfStream`` when there will be none."""
        if self._ready:
            await trio.lowlevel.checkpoint()
        while not self._ready:
            chunk = b"" if self.fault is not None else await self._read()
            if not chunk:
                self.ended.set()
                raise anyio.EndOfStream
            self._take(chunk)
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Close the pipe."""
        await self._pipe.aclose()

    async def _read(self) -> bytes:
        try:
            return bytes(await self._pipe.receive_some(_CHUNK))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    def _take(self, chunk: bytes) -> None:
        for line, cut in self._lines.feed(chunk):
            if cut:
                self.fault = McpProtocolError(f"it sent a message of more than {self._lines.most:,} bytes")
                return
            if line.strip():
                self._parse(line)

    def _parse(self, line: bytes) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except (ValidationError, ValueError):
            if (broken := _broken_answer(line)) is not None:
                self._ready.append(SessionMessage(broken))
            if not self._rubbish:
                _log.warning("an MCP server sent a line that is no message, or is nested too deep: %r", line[:100])
            self._rubbish += 1
            if self._rubbish > _RUBBISH:
                self.fault = McpProtocolError(f"it sent more than {_RUBBISH} lines that are no messages")
            return
        self._ready.append(SessionMessage(message))


class MessageWriter(ClosingStream):
    """Messages to a server, one a line, each written as a whole.

    A cancelled sender leaves half a line behind: then nothing more is written.
    """

    def __init__(self, pipe: trio.abc.SendStream) -> None:
        self._pipe = pipe
        self._turn = trio.Lock()
        self.broken = False

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message; ``BrokenResourceError`` if the server takes no more."""
        data = _encode(item.message)
        async with self._turn:
            if self.broken:
                raise anyio.BrokenResourceError
            self.broken = True
            try:
                await self._pipe.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise anyio.BrokenResourceError from None
            self.broken = False

    async def aclose(self) -> None:
        """Close the pipe."""
        await self._pipe.aclose()


def _broken_answer(line: bytes) -> JSONRPCError | None:
    """The error that stands for an answer which cannot be read: whoever waits for it need not wait any longer."""
    found = _ANSWER.match(line)
    if found is None:
        return None
    error = ErrorData(code=PARSE_ERROR, message="its answer cannot be read", data=NO_ANSWER)
    return JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error)


def _encode(message: JSONRPCMessage) -> bytes:
    if isinstance(message, JSONRPCResponse):
        body: dict[str, object] = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    else:
        body = message.model_dump(by_alias=True, exclude_unset=True)
    return json.dumps(body, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"
