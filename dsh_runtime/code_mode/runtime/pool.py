"""Keeps workers in reserve, so that a program need not wait for its process to start; each is used once.

Reserves are made in the background. Where one cannot be made, the next attempt waits until a program asks: then the
reason reaches somebody.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

import trio

from dsh_runtime.code_mode.runtime.errors import CodeRuntimeError
from dsh_runtime.code_mode.runtime.worker import Worker
from dsh_runtime.code_mode.runtime.workshop import Workshop

#: Seconds by which the making of a new worker waits, so that it does not get in the way of the one just taken: while
#: there are others in reserve it waits longer.
_COURTESY: Final = 0.005
_LEISURE: Final = 0.05

_log = logging.getLogger("dsh.code")


class Pool:
    """Workers in reserve, and those that are on their way out."""

    def __init__(self, workshop: Workshop, spares: int) -> None:
        self._workshop = workshop
        self._spares = spares
        self._ready: deque[Worker] = deque()
        self._wanted = trio.Event()
        self._urgent = trio.Event()
        self._closed = False
        self._failed = False
        self._leaving: list[Worker] = []
        self._changed = trio.Event()
        self._nursery: trio.Nursery | None = None

    async def serve(self) -> None:
        """Keep as many workers ready as there shall be; runs as long as the pool does."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for worker in self._leaving:
                nursery.start_soon(self._see_off, worker)
            try:
                while True:
                    self._wanted, self._urgent = trio.Event(), trio.Event()
                    await self._fill()
                    await self._wanted.wait()
                    with trio.move_on_after(_LEISURE):
                        await self._urgent.wait()
                        await trio.sleep(_COURTESY)
            finally:
                self._nursery = None

    async def _fill(self) -> None:
        while len(self._ready) < self._spares and not self._closed:
            try:
                worker = await self._workshop.make()
            except CodeRuntimeError as error:
                _log.warning("%s", error)
                self._failed = True
                self._tell()
                return
            self._failed = False
            if self._closed:
                await self._workshop.dispose(worker)
                return
            self._ready.append(worker)
            self._tell()

    def take_ready(self) -> Worker | None:
        """A worker from the reserve, if there is one that is alive."""
        while self._ready:
            worker = self._ready.popleft()
            self._wanted.set()
            if not self._ready:
                self._urgent.set()
            if worker.is_alive():
                return worker
            self.dismiss(worker)
        return None

    async def take(self) -> Worker:
        """A worker, from the reserve or made for the purpose."""
        worker = self.take_ready() or await self._workshop.make()
        self._wanted.set()
        self._urgent.set()
        return worker

    def dismiss(self, worker: Worker) -> None:
        """Bring a worker to rest in the background; its program can do nothing any more."""
        worker.kill()
        self._leaving.append(worker)
        if self._nursery is not None:
            self._nursery.start_soon(self._see_off, worker)

    async def _see_off(self, worker: Worker) -> None:
        try:
            with trio.CancelScope(shield=True):
                await self._workshop.dispose(worker)
        finally:
            self._leaving.remove(worker)
            self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def settle(self) -> None:
        """Wait until nobody is on the way out, and the reserve is full or known not to fill."""
        self._urgent.set()
        while self._leaving or (len(self._ready) < self._spares and not self._failed):
            await self._changed.wait()

    async def close(self) -> None:
        """Let go of the reserve and of the template; nothing is left afterwards."""
        self._closed = True
        with trio.CancelScope(shield=True):
            while self._ready:
                await self._workshop.dispose(self._ready.popleft())
            while self._leaving:
                await self._changed.wait()
            await self._workshop.close()
