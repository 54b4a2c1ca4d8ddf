"""What is sent over HTTP: JSON, an error of JSON-RPC, or a stream of events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, TypeAlias

from mcp_types import INVALID_REQUEST

from dsh_plugin_mcp_server._wire import encode_json

Message: TypeAlias = "MutableMapping[str, Any]"
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = "list[tuple[bytes, bytes]]"

_EVENTS: Final[Headers] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
PING: Final = b": ping\r\n\r\n"


async def send_bytes(send: Send, status: int, body: bytes, kind: bytes, headers: Headers | None = None) -> None:
    """A whole response."""
    fields = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, value: Any, headers: Headers | None = None) -> None:
    """A JSON document."""
    await send_bytes(send, status, encode_json(value), b"application/json", headers)


async def send_error(
    send: Send,
    status: int,
    message: str,
    *,
    code: int = INVALID_REQUEST,
    request_id: Any = None,
    data: Any = None,
    headers: Headers | None = None,
) -> None:
    """An error of JSON-RPC with its HTTP status."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    await send_json(send, status, {"jsonrpc": "2.0", "id": request_id, "error": error}, headers)


async def send_empty(send: Send, status: int) -> None:
    """A status and nothing else."""
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def begin_events(send: Send, headers: Headers | None = None) -> None:
    """The head of a stream of events."""
    await send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *(headers or [])]})


async def send_event(send: Send, data: bytes, *, last: bool = False) -> None:
    """One event of a stream."""
    frame = data if data is PING else b"event: message\r\ndata: " + data + b"\r\n\r\n"
    await send({"type": "http.response.body", "body": frame, "more_body": not last})


def header(scope: Mapping[str, Any], name: bytes) -> str | None:
    """The value of a header; ``None`` if it is not there, or more than once."""
    found = [value for key, value in scope["headers"] if key.lower() == name]
    return found[0].decode("latin-1") if len(found) == 1 else None
