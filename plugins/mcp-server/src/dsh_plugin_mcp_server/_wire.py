"""One line of the wire and the message it stands for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from mcp.shared.dispatcher import as_request_id
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError
from pydantic_core import from_json

_NO_JSON: Final = "Parse error: the message is not JSON in UTF-8"
_NO_MESSAGE: Final = "Invalid request: the message is not a JSON-RPC 2.0 object"


class WireError(Exception):
    """What the client sent is no message; ``code``, ``message`` and ``request_id`` make up the answer."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.request_id = request_id


@dataclass
class ReceivedMessage(SessionMessage):
    """A message and the number of bytes it took."""

    size: int = 0


def decode(line: bytes) -> ReceivedMessage | WireError:
    """The message that a line holds, or what to answer if it holds none."""
    try:
        body = from_json(line, allow_inf_nan=False)
    except ValueError:
        return WireError(PARSE_ERROR, _NO_JSON)
    if not isinstance(body, dict):
        return WireError(INVALID_REQUEST, _NO_MESSAGE)
    try:
        return ReceivedMessage(_message_type(body).model_validate(body, by_name=False), size=len(line))
    except ValidationError:
        return WireError(INVALID_REQUEST, _NO_MESSAGE, as_request_id(body.get("id")))


def _message_type(
    body: dict[str, Any],
) -> type[JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError]:
    """A request whose id is of a wrong type is a broken request, not a notification."""
    if "method" in body:
        return JSONRPCRequest if "id" in body else JSONRPCNotification
    return JSONRPCError if "error" in body else JSONRPCResponse


def encode(message: JSONRPCMessage) -> bytes:
    """A message as one line. A result goes out as it is: nothing left out, nothing reordered."""
    if isinstance(message, JSONRPCResponse):
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    else:
        body = message.model_dump(by_alias=True, exclude_unset=True)
    return encode_json(body) + b"\n"


def encode_json(value: Any) -> bytes:
    """Compact JSON. A lone surrogate, which UTF-8 cannot carry, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
