"""How frames look on the channel between a program and the host, and what one costs whoever takes it in.

A frame is four bytes of length, most significant first, and so many bytes of JSON in UTF-8: an array whose first item
says what it is.

| from the program | |
|---|---|
| ``["ready", notes]``, ``["unfit", reason]`` | before any program: what confines the process, or why it is of no use |
| ``["call", id, name, arguments]`` | a sub-call; ids count from 1 |
| ``["cancel", id]`` | the program has given up on a sub-call |
| ``["return", value]`` | the end |
| ``["fail", kind, message, traceback]`` | the end, by an exception or for lack of memory |

| from the host | |
|---|---|
| ``["run", code]`` | the program |
| ``["value", id, value]``, ``["error", id, message, name, code]`` | what became of a sub-call |
"""

from __future__ import annotations

import struct

HEADER = struct.Struct(">I")
#: How deep values may nest. Python's own ``json`` gives up not far beyond.
MAX_DEPTH = 512
#: How long the name of a tool may be.
MAX_NAME = 1_000

_CONTAINER_BYTES = 200
_ITEM_BYTES = 60
_COST_FACTOR = 16


def framed(body: bytes) -> bytes:
    """A frame."""
    return HEADER.pack(len(body)) + body


def cost(body: bytes | bytearray | memoryview) -> int:
    """About how much memory a frame's values take at most: a few bytes of JSON can stand for many of Python's.

    Commas and brackets within strings count too, so it is an upper bound that costs no parsing.
    """
    data = bytes(body)
    containers = data.count(b"[") + data.count(b"{")
    return len(data) + _CONTAINER_BYTES * containers + _ITEM_BYTES * data.count(b",")


def max_cost(max_frame: int) -> int:
    """How much a frame may cost at most."""
    return _COST_FACTOR * max_frame
