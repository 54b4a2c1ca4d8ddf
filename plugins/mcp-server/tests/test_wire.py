"""One line and the message it stands for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dsh_plugin_mcp_server._wire import ReceivedMessage, WireError, decode, encode
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def refused(data: bytes) -> WireError:
    fault = decode(data)
    assert isinstance(fault, WireError)
    return fault


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ({"id": 1, "method": "ping"}, JSONRPCRequest),
        ({"id": "one", "method": "ping", "params": {}}, JSONRPCRequest),
        ({"method": "notifications/initialized"}, JSONRPCNotification),
        ({"id": 1, "result": {}}, JSONRPCResponse),
        ({"id": None, "error": {"code": 1, "message": "no"}}, JSONRPCError),
    ],
)
def test_each_kind_of_message_is_read(members: dict[str, Any], kind: type) -> None:
    """A request, a notification, a response and an error."""
    data = line(**members)
    received = decode(data)
    assert isinstance(received, ReceivedMessage)
    assert isinstance(received.message, kind)
    assert received.size == len(data)


@pytest.mark.parametrize(
    "data",
    [
        b"rubbish",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"a":NaN}',
        b'{"a":' + b"1" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\x00",
    ],
)
def test_what_is_no_json_is_a_parse_error(data: bytes) -> None:
    """Whatever the bytes are, nothing worse happens than an error without an id."""
    fault = refused(data)
    assert (fault.code, fault.request_id) == (PARSE_ERROR, None)


@pytest.mark.parametrize("data", [b"1", b"null", b'"text"', b"[]", line(), line(id=1, method=2)])
def test_what_is_no_message_is_an_invalid_request(data: bytes) -> None:
    """JSON alone is not enough."""
    assert refused(data).code == INVALID_REQUEST


@pytest.mark.parametrize("bad_id", [1.5, True, None, {}, []])
def test_a_request_with_a_bad_id_is_not_taken_for_a_notification(bad_id: Any) -> None:
    """The SDK's own reading would run it without an answer."""
    assert refused(line(id=bad_id, method="tools/call")).code == INVALID_REQUEST


def test_a_broken_request_is_answered_under_its_id() -> None:
    """The client can tell which of its requests it was."""
    assert refused(line(id="x", method="ping", params=[1])).request_id == "x"


def test_a_result_goes_out_as_it_is() -> None:
    """Order, nulls and numbers are kept."""
    result = {"z": None, "a": {"y": 1.0, "b": [None, -0.0]}}
    written = encode(JSONRPCResponse(jsonrpc="2.0", id="7", result=result))
    assert written == b'{"jsonrpc":"2.0","id":"7","result":{"z":null,"a":{"y":1.0,"b":[null,-0.0]}}}\n'


def test_a_message_is_one_line_of_utf8() -> None:
    """Newlines are escaped, other characters stand as they are, lone surrogates do not break the line."""
    written = encode(JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "a\nb é \ud800"}))
    assert written.count(b"\n") == 1
    assert json.loads(written.decode())["result"] == {"text": "a\nb é ?"}


def test_an_error_without_an_id_says_so() -> None:
    """JSON-RPC wants the null."""
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=1, message="no"))
    assert json.loads(encode(error)) == {"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": "no"}}
