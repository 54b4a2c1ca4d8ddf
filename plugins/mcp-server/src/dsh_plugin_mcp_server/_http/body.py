"""The body of a request, read within a size and a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from dsh_plugin_mcp_server._http.replies import Message, Receive, header


class BodyRefusedError(Exception):
    """The body is not read; ``status`` and the message say why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class DisconnectedError(Exception):
    """The client has gone away before it had sent everything."""


async def read_body(scope: Mapping[str, Any], receive: Receive, most: int, seconds: float) -> bytes:
    """The whole body; :class:`BodyRefusedError` if it is too large or too slow."""
    stated = header(scope, b"content-length")
    if stated is not None and stated.isdecimal() and len(stated) < 20 and int(stated) > most:
        raise BodyRefusedError(413, f"the body is larger than {most:,} bytes")
    found = bytearray()
    with trio.move_on_after(seconds) as limit:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            found += message.get("body", b"")
            if len(found) > most:
                raise BodyRefusedError(413, f"the body is larger than {most:,} bytes")
            if not message.get("more_body"):
                return bytes(found)
    assert limit.cancelled_caught
    raise BodyRefusedError(408, f"the body was not there within {seconds:g} s")


def replaying(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives a body that has been read once more, then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
