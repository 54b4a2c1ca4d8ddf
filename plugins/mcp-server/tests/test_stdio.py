"""Reading and writing descriptors without threads."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
import trio
import trio.testing
from dsh_plugin_mcp_server._stdio import FrameWriter, LineReader
from dsh_plugin_mcp_server._wire import ReceivedMessage, WireError
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, JSONRPCNotification, JSONRPCRequest


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe, closed in the end if they are still open."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def note(size: int) -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="m", params={"text": "x" * size}))


async def read_all(fd: int) -> bytes:
    data = b""
    async with trio.lowlevel.FdStream(os.dup(fd)) as stream:
        async for chunk in stream:
            data += chunk
    return data


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


async def test_messages_are_read_until_the_client_closes(pipe: tuple[int, int]) -> None:
    """The last one needs no newline."""
    reader = LineReader(pipe[0], 1000)
    os.write(pipe[1], PING + b"\n" + PING)
    os.close(pipe[1])
    for _ in range(2):
        received = await reader.receive()
        assert isinstance(received, ReceivedMessage)
        assert isinstance(received.message, JSONRPCRequest)
    for _ in range(2):
        with pytest.raises(anyio.EndOfStream):
            await reader.receive()


async def test_a_read_that_waits_can_be_cancelled(pipe: tuple[int, int]) -> None:
    """No thread is left behind that would keep the process."""
    with trio.move_on_after(0) as scope:
        await LineReader(pipe[0], 1000).receive()
    assert scope.cancelled_caught


async def test_a_message_that_is_too_long_is_refused_with_the_limit(pipe: tuple[int, int]) -> None:
    """The next one is read as if nothing had been."""
    reader = LineReader(pipe[0], 50)
    os.write(pipe[1], b"[" + b" " * 60 + b"]\n" + PING + b"\n")
    fault = await reader.receive()
    assert isinstance(fault, WireError)
    assert fault.code == INVALID_REQUEST
    assert "longer than 50 bytes" in fault.message
    assert isinstance(await reader.receive(), ReceivedMessage)


async def test_a_file_can_be_read_in_place_of_a_pipe(tmp_path: Path) -> None:
    """``< requests.jsonl`` works, though a file cannot be waited for."""
    file = tmp_path / "requests"
    file.write_bytes(PING + b"\n")
    fd = os.open(file, os.O_RDONLY)
    try:
        reader = LineReader(fd, 1000)
        assert isinstance(await reader.receive(), ReceivedMessage)
        with pytest.raises(anyio.EndOfStream):
            await reader.receive()
    finally:
        os.close(fd)


async def test_a_client_that_has_left_is_noticed_without_reading(pipe: tuple[int, int]) -> None:
    """Even while there is something left to read."""
    reader = LineReader(pipe[0], 1000)
    os.write(pipe[1], PING)
    assert not reader.hung_up()
    os.close(pipe[1])
    assert reader.hung_up()


async def test_a_socket_serves_as_well_as_a_pipe() -> None:
    """Node.js gives its children sockets."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader, writer = LineReader(ours.fileno(), 1000), FrameWriter(ours.fileno())
        theirs.sendall(PING + b"\n")
        assert isinstance(await reader.receive(), ReceivedMessage)
        await writer.send(note(1))
        assert json.loads(theirs.recv(1000))["method"] == "m"
        assert not reader.hung_up()
        theirs.close()
        assert reader.hung_up()
        with pytest.raises(anyio.BrokenResourceError):
            await writer.send(note(1))


async def test_frames_larger_than_the_pipe_arrive_whole_and_one_after_the_other(pipe: tuple[int, int]) -> None:
    """Senders at the same time do not mix."""
    writer, sizes, data = FrameWriter(pipe[1]), [300_000, 0, 1_000_000, 5], b""

    async def read() -> None:
        nonlocal data
        data = await read_all(pipe[0])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        async with trio.open_nursery() as senders:
            for size in sizes:
                senders.start_soon(writer.send, note(size))
        os.close(pipe[1])
    assert sorted(len(json.loads(frame)["params"]["text"]) for frame in data.splitlines()) == sorted(sizes)


async def test_a_frame_that_was_begun_is_finished_though_its_sender_is_cancelled(pipe: tuple[int, int]) -> None:
    """Half a frame would spoil the next one."""
    writer = FrameWriter(pipe[1])
    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(_cancel_when_stuck, scope)
            nursery.start_soon(_read_when_cancelled, scope, pipe[0])
            await writer.send(note(300_000))


async def _cancel_when_stuck(scope: trio.CancelScope) -> None:
    await trio.testing.wait_all_tasks_blocked()
    scope.cancel()


async def _read_when_cancelled(scope: trio.CancelScope, fd: int) -> None:
    while not scope.cancel_called:
        await trio.testing.wait_all_tasks_blocked()
    data = b""
    while not data.endswith(b"\n"):
        await trio.lowlevel.wait_readable(fd)
        data += os.read(fd, 65536)
    assert len(json.loads(data)["params"]["text"]) == 300_000


async def test_a_transport_that_is_given_up_keeps_nobody_waiting(pipe: tuple[int, int]) -> None:
    """A client that does not read cannot hold up the end."""
    writer = FrameWriter(pipe[1])

    async def send() -> None:
        with pytest.raises(anyio.BrokenResourceError):
            await writer.send(note(300_000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        writer.give_up()


async def test_the_blocking_mode_of_the_descriptors_stays(pipe: tuple[int, int]) -> None:
    """Other processes may share them."""
    await FrameWriter(pipe[1]).send(note(1))
    await LineReader(pipe[0], 1000).receive()
    assert os.get_blocking(pipe[0])
    assert os.get_blocking(pipe[1])
