"""What the client sends, while it reads no answers."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import mcp_types
import pytest
import trio
import trio.testing
from dsh_plugin_mcp_server._backlog import Backlog
from dsh_plugin_mcp_server._intake import Intake
from dsh_plugin_mcp_server._outlet import Outlet
from dsh_plugin_mcp_server._streams import Transport
from dsh_plugin_mcp_server._wire import WireError
from mcp.shared.message import SessionMessage

RUBBISH = WireError(mcp_types.PARSE_ERROR, "no JSON")
PING = SessionMessage(mcp_types.JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))


class Sent:
    """What the client has sent, and then its end."""

    def __init__(self, *items: SessionMessage | Exception) -> None:
        self.items = list(items)

    async def receive(self) -> SessionMessage | Exception:
        await trio.lowlevel.checkpoint()
        if not self.items:
            raise anyio.EndOfStream
        return self.items.pop(0)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class Full:
    """A pipe that takes nothing, and can break."""

    def __init__(self) -> None:
        self.broken = trio.Event()

    async def send(self, item: SessionMessage, /) -> None:
        await self.broken.wait()
        raise anyio.BrokenResourceError

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


def intake(sent: Sent, full: Full, start: Callable[..., None], most: int, ended: list[str]) -> Intake:
    backlog = Backlog(most, 1000)
    outlet = Outlet(Transport(sent, full), backlog, lambda: ended.append("broken"))
    return Intake(Transport(sent, full), backlog, outlet, lambda _: None, lambda: ended.append("left"), start)


@pytest.mark.parametrize("sent", [(PING, RUBBISH), (PING, ValueError("no message")), (PING, PING)])
async def test_a_client_that_leaves_its_answers_unread_is_seen_to_leave(
    sent: tuple[SessionMessage | Exception, ...], autojump_clock: trio.testing.MockClock
) -> None:
    """Though the last thing that it sent is refused, and the refusal has nowhere to go."""
    ended: list[str] = []
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            reading = intake(Sent(*sent), Full(), nursery.start_soon, 10, ended)
            assert await reading.receive() is not None
            with pytest.raises(anyio.EndOfStream):
                await reading.receive()
            assert ended == ["left"]
            nursery.cancel_scope.cancel()


async def test_refusals_that_nobody_reads_hold_back_what_is_read(autojump_clock: trio.testing.MockClock) -> None:
    """They are not piled up, and a pipe that breaks under them is reported and raises nothing."""
    ended: list[str] = []
    sent, full = Sent(*[RUBBISH] * 100), Full()
    async with trio.open_nursery() as nursery:
        reading = intake(sent, full, nursery.start_soon, 10, ended)
        with trio.move_on_after(60) as scope:
            await reading.receive()
        assert scope.cancelled_caught
        assert len(sent.items) == 90
        full.broken.set()
    assert set(ended) == {"broken"}
