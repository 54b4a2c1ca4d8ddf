"""Runs one program: says that it is ready, waits for the text, runs it, sends what came of it and ends.

Nothing here guards anything: the program shares this process and may do to it what it likes. What guards is outside
(see ``confine``), and the host, which takes nothing that comes out of here on trust.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import mmap
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NoReturn

from .channel import Channel
from .confine import Unfit, confine
from .order import Order
from .source import load
from .tools import Calls, ToolCallError, Tools
from .trace import cut, message_of, trace_of
from .values import encode
from .wire import framed

_RESERVE = 8 * 1024 * 1024
_CHUNK = 65_536
_OUT_OF_MEMORY = b'["fail","memory","MemoryError","the program ran out of memory; its traceback is not known"]'


_OUT_OF_MEMORY_FRAME = framed(_OUT_OF_MEMORY)


def run(descriptor: int, order: Order, parent: int) -> NoReturn:
    """All that this process is for."""
    connection = socket.socket(fileno=descriptor)
    try:
        notes = confine(order, parent)
        _print_by_the_line()
        rehearse(order, 2)
        runner = Runner(Channel(connection), order, partial(_await_the_end, connection))
    except (Unfit, OSError, ValueError) as error:
        connection.sendall(framed(json.dumps(["unfit", f"{type(error).__name__}: {error}"]).encode()))
        os._exit(1)
    connection.sendall(framed(json.dumps(["ready", notes]).encode()))
    runner.run()
    os._exit(70)


def rehearse(order: Order, times: int) -> None:
    """Run a small program against nobody.

    A copy of a process gets pages of its own as it touches them, and Python code runs faster once it has run: both are
    best had before the program is there.
    """
    for _ in range(times):
        own, other = socket.socketpair()
        with own, other:
            other.sendall(
                framed(json.dumps(["run", "return await tools.name({})"]).encode()) + framed(b'["value",1,1]')
            )
            runner = Runner(Channel(own), order, _stay)
            runner.run()
            runner.close()


def _stay() -> None:
    """Do not end the process."""


def _await_the_end(connection: socket.socket) -> NoReturn:
    """Be killed by the host, which knows by now what came of the program.

    To end here would only make it wait: the kernel is likely to have woken the host up on this very processor, which a
    process that ends takes up for a while.
    """
    with contextlib.suppress(BaseException):
        os.close(1)  # what its threads still print is none of its output any more
        os.close(2)
        connection.setblocking(True)
        while connection.recv(_CHUNK):
            pass
    os._exit(0)


def _reserve() -> mmap.mmap:
    """Room in the address space, which is what the limit on memory counts; nothing has to be written to it."""
    return mmap.mmap(-1, _RESERVE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


class Runner:
    """One program and its end; ``leave`` does not come back but in a rehearsal, so that nothing else of it runs."""

    def __init__(self, channel: Channel, order: Order, leave: Callable[[], None]) -> None:
        self._channel = channel
        self._leave = leave
        self._max_frame = order["max_frame"]
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        self._calls = Calls(channel, self._loop, order["sub_calls"], order["max_frame"])
        self._reserve = _reserve()  # what is left to tell of the end with

    def run(self) -> None:
        """Wait for the program and run it; the process ends within."""
        _, code = self._channel.receive()
        self._channel.attach(self._loop, self._calls.heard)
        try:
            body = load(code, {"tools": Tools(self._calls), "ToolCallError": ToolCallError})
            self._loop.run_until_complete(self._to_end(body))
        except BaseException as error:  # of the text itself, or of a loop that the program has meddled with
            self._end(self._failure(error))

    def close(self) -> None:
        """Let go of the loop and of the reserve."""
        self._loop.close()
        self._reserve.close()

    async def _to_end(self, body: Callable[[], Awaitable[Any]]) -> None:
        try:
            value = await body()
            message = encode(["return"], value, "what the program returned", self._max_frame)
        except BaseException as error:
            message = self._failure(error)
        self._end(message)

    def _end(self, message: bytes) -> None:
        try:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(BaseException):
                    stream.flush()
            self._channel.send_last(message)
        except MemoryError:
            self._channel.send_raw(_OUT_OF_MEMORY_FRAME)
        self._leave()

    def _failure(self, error: BaseException) -> bytes:
        self._reserve.close()
        try:
            if _lacks_memory(error):
                return json.dumps(["fail", "memory", "MemoryError", trace_of(error)]).encode()
            return json.dumps(["fail", "exception", message_of(error), trace_of(error)]).encode()
        except MemoryError:
            return _OUT_OF_MEMORY
        except BaseException:  # the program's own __str__, say
            return json.dumps(["fail", "exception", cut(type(error).__name__, 200), ""]).encode()


def _lacks_memory(error: BaseException) -> bool:
    # CPython 3.11 sets no exception where a frame finds no memory, and then complains of itself.
    return isinstance(error, MemoryError) or (type(error) is SystemError and "without exception set" in str(error))


def _print_by_the_line() -> None:
    """Let what is printed leave at once, so that it is not lost when the program is ended."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(descriptor, "w", closefd=False)
        text = io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", "\n", line_buffering=True)
        setattr(sys, name, text)
        setattr(sys, f"__{name}__", text)
    sys.argv = ["<program>"]
