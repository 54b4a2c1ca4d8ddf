"""A thread in which trio runs, and other threads' access to it."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio

T = TypeVar("T")
Opener = Callable[["Inside"], Awaitable[None]]


class Inside:
    """What the host's thread offers to other threads, once ``main`` has called :meth:`ready`."""

    def __init__(self) -> None:
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None
        self._nursery: trio.Nursery | None = None

    async def ready(self) -> None:
        """Serve other threads until the thread is to end, then wait for what they have begun."""
        async with trio.open_nursery() as self._nursery:
            self._stop = trio.Event()
            self._token = trio.lowlevel.current_trio_token()
            self._opened.set_result(None)
            await self._stop.wait()

    def run(self, fn: Callable[..., Awaitable[T]], *args: Any) -> concurrent.futures.Future[T]:
        """Begin ``fn`` in a task of the host's thread; ``RuntimeError`` if the thread has ended."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def start() -> None:
            assert self._nursery is not None and self._stop is not None
            if self._stop.is_set():
                future.set_exception(RuntimeError("the thread has ended"))
            else:
                self._nursery.start_soon(_settle, future, fn, args)

        self._soon(start)
        return future

    def run_sync(self, fn: Callable[[], object]) -> None:
        """Run ``fn`` in the host's thread soon; nothing if the thread has ended."""
        try:
            self._soon(fn)
        except RuntimeError:
            return

    def stop(self) -> None:
        """Let the thread end when what has begun has come to an end."""
        stop = self._stop
        if stop is not None:
            self.run_sync(stop.set)

    def _soon(self, fn: Callable[[], object]) -> None:
        if self._token is None:
            raise RuntimeError("the thread is not ready")
        try:
            self._token.run_sync_soon(fn)
        except trio.RunFinishedError:
            raise RuntimeError("the thread has ended") from None


class TrioThread:
    """Runs ``main(inside)`` under trio in a thread of its own."""

    def __init__(self, main: Opener, name: str) -> None:
        self.inside = Inside()
        self._main = main
        # A program that does not close its host is not kept from ending.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._error: BaseException | None = None

    def start(self) -> concurrent.futures.Future[None]:
        """Start the thread; the future is done when it is ready, or says why it cannot be."""
        self._thread.start()
        return self.inside._opened

    def stop(self) -> None:
        """Ask the thread to end."""
        self.inside.stop()

    def join(self) -> None:
        """Wait until the thread has ended; raise what ended it, if that was an error."""
        self._thread.join()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _run(self) -> None:
        try:
            trio.run(self._main, self.inside)
        except BaseException as error:
            if not self.inside._opened.done():
                self.inside._opened.set_exception(error)
            else:
                self._error = error


async def _settle(future: concurrent.futures.Future[Any], fn: Callable[..., Awaitable[Any]], args: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = await fn(*args)
    except trio.Cancelled:
        future.set_exception(RuntimeError("the thread has ended"))
        raise
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
