"""A worker: the process of one program, as the host holds it, and the warden that watches over it.

The host holds four things of it: the channel, the pipe that the program prints to, the warden's control socket, and a
descriptor that stands for the process, by which it is killed at once and never mistaken for another.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import socket
from typing import Any, Final

import trio
from attrs import frozen

from dsh_runtime.code_mode.runtime.child.order import Order
from dsh_runtime.code_mode.runtime.endings import Exit

_log = logging.getLogger("dsh.code")

_MAX_REPORT: Final = 4_096
_REST_SECONDS: Final = 20.0
#: A process that has closed its channel may be about to end: so long is waited for the word on how.
_LAST_WORDS_SECONDS: Final = 0.5


@frozen
class Ends:
    """The program's ends of what is shared, until they have been handed over."""

    channel: socket.socket
    output: int
    control: socket.socket

    def descriptors(self) -> list[int]:
        """In the order in which the template expects them."""
        return [self.channel.fileno(), self.output, self.control.fileno()]

    def close(self) -> None:
        """They have been handed over, or never will be."""
        self.channel.close()
        self.control.close()
        os.close(self.output)


class Worker:
    """One process for one program; used once."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.exit: Exit | None = None
        self.process: int | None = None
        #: Whether nothing but this one process can belong to the program.
        self.alone = False
        self.failure: str | None = None
        self._at_rest = False
        self._killed = False
        self._control_ended = False
        self.channel, channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self.control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.output, output = os.pipe()
        self.ends = Ends(channel, output, control)
        self.poll = select.epoll()
        for descriptor in (self.channel.fileno(), self.control.fileno(), self.output):
            os.set_blocking(descriptor, False)
        for connection in (self.channel, self.control):
            self.poll.register(connection, select.EPOLLIN)

    async def readable(self) -> None:
        """Wait until something can be read or written."""
        await trio.lowlevel.wait_readable(self.poll)

    async def wait(self) -> list[tuple[int, int]]:
        """What can be read or written, as descriptors and events; waits until there is something."""
        await self.readable()
        return self.poll.poll(0)

    def hear_warden(self) -> None:
        """Take in what the warden reports. Once the process has ended, the channel ends when it has been read."""
        with contextlib.suppress(BlockingIOError):
            data, descriptors, _, _ = socket.recv_fds(self.control, _MAX_REPORT, 1)
            for descriptor in descriptors:
                self.process = descriptor
                os.set_inheritable(descriptor, False)
            if data:
                self._note(json.loads(data))
            elif not self._control_ended:
                self._control_ended = True
                self.poll.unregister(self.control)
                self._end_channel()

    def _note(self, report: dict[str, Any]) -> None:
        match report:
            case {"exited": status, "cpu": cpu}:
                if not self._killed:
                    self.exit = Exit(status, cpu)
                self._end_channel()
            case {"rest": folder}:
                self._at_rest = True
                if not folder:
                    _log.warning("the working directory %s of a program could not be removed", self.order["folder"])
            case {"stuck": count}:
                _log.error("%s processes of a program could not be ended; look for them with ps", count)
            case {"failed": reason}:
                self.failure = reason

    def _end_channel(self) -> None:
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_RD)

    def is_alive(self) -> bool:
        """Whether the process is still there, as far as the warden has reported."""
        self.hear_warden()
        return self.exit is None and not self._control_ended

    async def last_words(self) -> None:
        """Wait a moment for the process, which has closed its channel, to end by itself."""
        with trio.move_on_after(_LAST_WORDS_SECONDS):
            while self.exit is None and not self._control_ended:
                await trio.lowlevel.wait_readable(self.control)
                self.hear_warden()

    def kill(self) -> None:
        """Let the program's process do nothing more, from now on. The warden, which sees its end, ends the rest."""
        if self._killed:
            return
        self._killed = True
        if self.process is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self.process, signal.SIGKILL)

    async def rest(self) -> None:
        """Kill what there is, and wait until nothing of it is left."""
        self.kill()
        with contextlib.suppress(OSError):
            self.control.shutdown(socket.SHUT_WR)  # the order to the warden
        with trio.CancelScope(shield=True):
            with trio.move_on_after(_REST_SECONDS):
                while not self._control_ended:
                    await trio.lowlevel.wait_readable(self.control)
                    self.hear_warden()
            if self.process is not None and not self._at_rest:
                _log.error("the warden of a program is gone; the template cleans up behind it")

    async def dispose(self) -> None:
        """Bring it to rest and let go of it."""
        try:
            await self.rest()
        finally:
            self.close()

    def close(self) -> None:
        """Let go of everything that the host holds."""
        self.poll.close()
        self.channel.close()
        self.control.close()
        os.close(self.output)
        if self.process is not None:
            os.close(self.process)
            self.process = None
