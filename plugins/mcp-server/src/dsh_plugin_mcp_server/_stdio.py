"""The transport over this process's stdin and stdout: one JSON message a line.

Strategy: no threads, which a blocked read would keep alive. trio waits until the descriptor is ready, and reads and
writes are then of a size that does not block; the descriptors keep their blocking mode, which other processes may
share. A frame that has been begun is finished even if its sender is cancelled, or else the transport is given up.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio
import trio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST

from dsh_plugin_mcp_server._fds import claimed_stdio
from dsh_plugin_mcp_server._lines import LineSplitter
from dsh_plugin_mcp_server._streams import Transport
from dsh_plugin_mcp_server._wire import WireError, decode, encode

_CHUNK: Final = 65536
#: A descriptor that is ready to be written takes so many bytes without blocking.
_SAFE: Final = select.PIPE_BUF
#: So many writes in a row before the other tasks get their turn.
_BURST: Final = 16


@contextmanager
def stdio_transport(max_message_bytes: int) -> Iterator[Transport]:
    """Take over stdin and stdout for one client."""
    with claimed_stdio() as (stdin, stdout):
        reader, writer = LineReader(stdin, max_message_bytes), FrameWriter(stdout)
        yield Transport(reader, writer, reader.hung_up, writer.give_up)


class LineReader:
    """The client's messages, read from a descriptor."""

    def __init__(self, fd: int, max_message_bytes: int) -> None:
        self._fd = fd
        self._splitter = LineSplitter(max_message_bytes)
        self._lines: deque[bytes | None] = deque()
        self._ended = False

    async def receive(self) -> SessionMessage | Exception:
        """The next message, or what to answer to something that is none."""
        if self._lines:
            await trio.lowlevel.checkpoint()
        while not self._lines:
            await self._read()
        line = self._lines.popleft()
        if line is None:
            return WireError(
                INVALID_REQUEST, f"Invalid request: the message is longer than {self._splitter.most} bytes"
            )
        return decode(line)

    def hung_up(self) -> bool:
        """Whether the client has closed its end, whatever is left to read."""
        poll = select.poll()
        poll.register(self._fd, 0)
        return bool(poll.poll(0))

    async def aclose(self) -> None:
        """The descriptor belongs to whoever claimed it."""
        await trio.lowlevel.checkpoint()

    async def _read(self) -> None:
        if self._ended:
            raise anyio.EndOfStream
        await _readable(self._fd)
        chunk = _read_now(self._fd)
        if chunk is None:
            return
        self._ended = not chunk
        self._lines.extend(self._splitter.feed(chunk) if chunk else self._splitter.finish())


class FrameWriter:
    """Messages to the client, written to a descriptor one after the other."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._turn = trio.Lock()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._finishing: trio.CancelScope | None = None
        self._broken = False

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message, as a whole or, if the transport is given up, not at all or in part."""
        frame = memoryview(encode(item.message))
        async with self._turn:
            if self._broken:
                raise anyio.BrokenResourceError
            rest = self._write_now(frame)
            if rest:
                await self._finish(rest)

    def give_up(self) -> None:
        """Let a write that the client keeps waiting fail, and every one after it."""
        self._broken = True
        if self._finishing is not None:
            self._finishing.cancel()

    async def aclose(self) -> None:
        """The descriptor belongs to whoever claimed it."""
        await trio.lowlevel.checkpoint()

    async def _finish(self, rest: memoryview) -> None:
        with trio.CancelScope(shield=True) as self._finishing:
            while rest:
                await trio.lowlevel.wait_writable(self._fd)
                rest = self._write_now(rest)
        self._finishing = None
        if rest:
            raise anyio.BrokenResourceError

    def _write_now(self, frame: memoryview) -> memoryview:
        """Write what goes without waiting; give back the rest."""
        try:
            for _ in range(_BURST):
                if not frame or not self._poll.poll(0):
                    break
                frame = frame[os.write(self._fd, frame[:_SAFE]) :]
        except BlockingIOError:
            pass
        except OSError as error:
            self._broken = True
            raise anyio.BrokenResourceError from error
        return frame


async def _readable(fd: int) -> None:
    """Wait until a read does not block. A file or the null device, which cannot be waited for, never does."""
    try:
        await trio.lowlevel.wait_readable(fd)
    except PermissionError:
        await trio.lowlevel.checkpoint()


def _read_now(fd: int) -> bytes | None:
    """What is there; nothing at the end; ``None`` if there is nothing yet after all."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
