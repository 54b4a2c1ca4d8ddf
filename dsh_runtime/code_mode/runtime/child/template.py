"""The template: an interpreter that has imported what programs use and runs none. Each program's process is a copy.

A copy of a process takes a millisecond where starting Python takes a hundred; and since the template never runs
anybody's program, each copy is as fresh as the first.

It reads orders from the socket that is its stdin, each with three descriptors: the channel, the output and the control
socket of one program. It ends when the host closes the socket. Its wardens do not: each has a socket of its own.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from .files import remove
from .order import Order
from .program import rehearse
from .system import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, prctl
from .warden import children, kill_all, kill_user, watch

_MAX_ORDER = 65_536
_DESCRIPTORS = 3
_TIMES = 20
_STACK_LEVELS = 20_000
_REHEARSED = Order(
    folder="", user=None, memory=0, cpu_time=0, processes=0, threads=0, file_bytes=0, open_files=0, max_frame=4_096,
    sub_calls=1, bwrap=None,
)  # fmt: skip
#: What programs are likely to import.
_LIKELY = (
    "base64", "bisect", "calendar", "collections", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib",
    "enum", "fractions", "functools", "hashlib", "heapq", "html", "io", "itertools", "json", "math", "operator",
    "pprint", "random", "re", "statistics", "string", "textwrap", "time", "typing", "unicodedata", "urllib.parse",
    "uuid",
)  # fmt: skip


def main() -> None:
    """Serve orders until the host is gone."""
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    sys.path[:] = [path for path in sys.path if path != _home()]
    _warm_up()
    Template(socket.socket(fileno=0), os.path.realpath(sys.executable)).serve()


def _home() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _warm_up() -> None:
    """Import and touch what a program is going to need, so that its own process finds it done."""
    for name in _LIKELY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    rehearse(_REHEARSED, _TIMES)
    _grow_stack()
    gc.collect()
    gc.freeze()
    gc.disable()


def _grow_stack() -> None:
    """Have a large stack from the start.

    A stack grows as it is used, within the limit on memory: a program that has used all of it would otherwise end by a
    segmentation fault before it could tell of a lack of memory.
    """
    limit = sys.getrecursionlimit()
    one: list[Any] = []
    other: list[Any] = []
    for _ in range(_STACK_LEVELS):
        one, other = [one], [other]
    sys.setrecursionlimit(2 * _STACK_LEVELS)
    with contextlib.suppress(RecursionError):
        _ = one == other  # takes two hundred bytes of stack a level, and next to no time
    sys.setrecursionlimit(limit)


class Template:
    """Takes orders in, and cleans up behind a warden that did not live to do it."""

    def __init__(self, host: socket.socket, python: str) -> None:
        self._host = host
        self._python = python
        self._wardens: dict[int, Order] = {}

    def serve(self) -> None:
        """One order after the other, until the host closes the socket."""
        wakeup = _catch_children()
        poll = select.poll()
        poll.register(self._host, select.POLLIN)
        poll.register(wakeup, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if wakeup in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wakeup, 4096)
                self._reap()
            if self._host.fileno() in ready and not self._take_order():
                return

    def _take_order(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._host, _MAX_ORDER, _DESCRIPTORS)
        if not data:
            return False
        if len(descriptors) == _DESCRIPTORS:
            self._start(json.loads(data), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _start(self, order: Order, descriptors: list[int]) -> None:
        """A warden for one program."""
        try:
            os.mkdir(order["folder"], 0o700)
            if order["user"] is not None:
                os.chown(order["folder"], order["user"], order["user"])
            pid = os.fork()
            if not pid:
                self._become_warden(order, *descriptors)
            self._wardens[pid] = order
        except OSError as error:
            remove(order["folder"])
            with contextlib.suppress(OSError):
                os.write(descriptors[-1], json.dumps({"failed": str(error)}).encode())

    def _become_warden(self, order: Order, channel: int, output: int, control: int) -> NoReturn:
        try:
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.close(null)
            watch(order, self._python, channel, output, control)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            order = self._wardens.pop(pid, None)
            if order is not None and status:
                self._clean_up_for(order)

    def _clean_up_for(self, order: Order) -> None:
        """A warden was killed: what it watched over has become this process's own."""
        user = order["user"]
        if user is not None:
            kill_user(user)
        for _ in range(1000):
            strays = [pid for pid in children() if pid not in self._wardens]
            if not strays:
                break
            kill_all(strays)
            for pid in strays:
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)
        remove(order["folder"])


def _catch_children() -> int:
    """The descriptor that becomes readable when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    return reading
