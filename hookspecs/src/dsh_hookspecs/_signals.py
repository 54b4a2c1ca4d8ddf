"""Abort signals: how a caller, a deadline or a policy tells a running call to stop.

The model is the web platform's AbortController and AbortSignal (DOM standard, section "Aborting ongoing activities"),
with two differences: everything works from any thread and under any event loop or none, and a signal holds a link to
another one only while somebody listens, so that a long-lived signal keeps no trace of the calls that used it.

Strategy: a signal is a flag that is read, not a timer that fires. A deadline is compared with its clock when somebody
asks; a combined signal asks its sources. Links and timers exist only between the first callback and the last.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

Undo = Callable[[], None]
_log = logging.getLogger(__name__)


class AbortError(Exception):
    """The reason of a signal that was aborted without one."""


class DeadlineError(AbortError):
    """The reason of a signal whose deadline has passed."""


def _nothing() -> None:
    """The undo of what was never done."""


class AbortSignal:
    """Tells whether, and why, to stop. Made by an :class:`AbortController`, :meth:`any` or :meth:`timeout`."""

    __slots__ = ("__weakref__", "_callbacks", "_lock", "_reason")

    def __init__(self) -> None:
        self._reason: BaseException | None = None
        self._callbacks: dict[object, Callable[[], object]] | None = None
        self._lock: AbstractContextManager[object] = threading.Lock()

    @property
    def aborted(self) -> bool:
        """Whether the signal has been aborted; cheap enough to poll."""
        return self._reason is not None

    @property
    def reason(self) -> BaseException | None:
        """Why the signal was aborted, or ``None`` while it is not."""
        return self._reason

    @property
    def deadline(self) -> float:
        """When the signal aborts by itself, on the clock of the loop it was made under; infinity for never."""
        return math.inf

    def throw_if_aborted(self) -> None:
        """Raise :attr:`reason` if the signal has been aborted."""
        reason = self.reason
        if reason is not None:
            raise reason

    def add_callback(self, callback: Callable[[], object]) -> Undo:
        """Call ``callback`` once when the signal aborts, at once if it already has; give back the undo.

        The callback runs in the thread that aborts. What it raises is logged.
        """
        key = object()
        with self._lock:
            live = self._reason is None
            if live:
                if self._callbacks is None:
                    self._callbacks = {}
                self._callbacks[key] = callback
                if len(self._callbacks) == 1:
                    self._listened()
        if live:
            return lambda: self._remove(key)
        _call(callback)
        return _nothing

    def follow(self, callback: Callable[[], object], clock: object = None) -> tuple[Undo, float]:
        """Like :meth:`add_callback`, for a caller with deadlines of its own.

        Gives the undo and a deadline on ``clock`` (the running loop's clock object): what the deadline covers needs
        no timer and does not call back. ``callback`` may be called more than once.
        """
        return self.add_callback(callback), math.inf

    async def wait(self) -> BaseException:
        """Wait until the signal aborts, under trio or asyncio; give back the reason."""
        if not self.aborted:
            await _wait_in_loop(self)
        reason = self.reason
        assert reason is not None
        return reason

    @staticmethod
    def any(signals: Iterable[AbortSignal]) -> AbortSignal:
        """A signal that aborts as soon as one of ``signals`` does, with that one's reason."""
        sources = tuple(dict.fromkeys(signals))
        return sources[0] if len(sources) == 1 else LinkedSignal(sources)

    @staticmethod
    def timeout(seconds: float) -> AbortSignal:
        """A signal that aborts when ``seconds`` have passed on the clock of the running loop (else monotonic time)."""
        if not seconds >= 0:
            raise ValueError(f"AbortSignal.timeout takes a number of seconds that is not negative, not {seconds!r}")
        return _DeadlineSignal(seconds)

    def _remove(self, key: object) -> None:
        with self._lock:
            if self._callbacks and self._callbacks.pop(key, None) is not None and not self._callbacks:
                self._unlistened()

    def _abort(self, reason: BaseException) -> bool:
        with self._lock:
            if self._reason is not None:
                return False
            self._reason = reason
            callbacks, self._callbacks = self._callbacks, None
            if callbacks:
                self._unlistened()
        for callback in list(callbacks.values()) if callbacks else ():
            _call(callback)
        return True

    def _listened(self) -> None:
        """The first callback has come (called with the lock held)."""

    def _unlistened(self) -> None:
        """The last callback has gone (called with the lock held)."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lstrip('_')} {'aborted' if self.aborted else 'live'}>"


class AbortController:
    """Owns one :attr:`signal` and may abort it, once, from any thread."""

    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal = AbortSignal()

    def abort(self, reason: BaseException | str | None = None) -> bool:
        """Abort the signal; whether this call was the one that did it. A string becomes an :class:`AbortError`."""
        if not isinstance(reason, BaseException):
            reason = AbortError(reason if reason is not None else "aborted")
        return self.signal._abort(reason)


#: The lock of all linked signals: each call makes one, few ever use its lock, and none holds it for long. It is taken
#: before a source's own, and again where a source is a linked signal too.
_linking = threading.RLock()


class LinkedSignal(AbortSignal):
    """Aborted when one of its sources is, or by itself; linked to them only while it has callbacks."""

    __slots__ = ("_links", "_sources")

    def __init__(self, sources: tuple[AbortSignal, ...]) -> None:
        self._reason = None
        self._callbacks = None
        self._lock = _linking
        self._sources = sources
        self._links: Sequence[Undo] = ()

    @property
    def aborted(self) -> bool:
        return self.poll()

    def poll(self) -> bool:
        """What :attr:`aborted` says; each call asks several times, and a property costs thrice a method."""
        if self._reason is not None:
            return True
        for source in self._sources:
            # The flag of a plain signal tells all; any other has a source or a clock to ask.
            if source._reason is not None or (type(source) is not AbortSignal and source.aborted):
                return self.reason is not None
        return False

    @property
    def reason(self) -> BaseException | None:
        if self._reason is None:
            for source in self._sources:
                reason = source.reason
                if reason is not None:
                    self._abort(reason)
                    break
        return self._reason

    @property
    def deadline(self) -> float:
        return min((source.deadline for source in self._sources), default=math.inf)

    def add_callback(self, callback: Callable[[], object]) -> Undo:
        undo = super().add_callback(callback)
        self._link()
        return undo

    def follow(self, callback: Callable[[], object], clock: object = None) -> tuple[Undo, float]:
        followed = [source.follow(callback, clock) for source in self._sources]
        undos = [AbortSignal.add_callback(self, callback), *(undo for undo, _ in followed)]
        return lambda: _undo_all(undos), min((deadline for _, deadline in followed), default=math.inf)

    def _link(self) -> None:
        # Outside the lock: a source that is already aborted calls back at once, in this thread.
        with self._lock:
            wanted = not self._links and bool(self._callbacks)
            if wanted:
                self._links = (_nothing,)
        if not wanted:
            return
        links = [source.add_callback(self._follow) for source in self._sources]
        with self._lock:
            if self._callbacks:
                self._links, links = links, []
            else:
                self._links = ()
        for undo in links:
            undo()

    def _follow(self) -> None:
        """A source has aborted: reading the reason takes it over."""
        _ = self.reason

    def _unlistened(self) -> None:
        links, self._links = self._links, ()
        for undo in links:
            undo()


class _DeadlineSignal(AbortSignal):
    """Aborted when its clock says so; has a timer only while it has callbacks."""

    __slots__ = ("_clock", "_clock_object", "_deadline", "_seconds", "_timer")

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._clock_object, self._clock = _current_clock()
        self._seconds = seconds
        self._deadline = self._clock() + seconds
        self._timer: Undo = _nothing

    @property
    def aborted(self) -> bool:
        return self.reason is not None

    @property
    def reason(self) -> BaseException | None:
        if self._reason is None and self._clock() >= self._deadline:
            self._expire()
        return self._reason

    @property
    def deadline(self) -> float:
        return self._deadline

    def add_callback(self, callback: Callable[[], object]) -> Undo:
        _ = self.reason  # A deadline that has passed counts although nobody has looked yet.
        return super().add_callback(callback)

    def follow(self, callback: Callable[[], object], clock: object = None) -> tuple[Undo, float]:
        if clock is not None and clock is self._clock_object:
            return _nothing, self._deadline
        return self.add_callback(callback), math.inf

    def _expire(self) -> None:
        self._abort(DeadlineError(f"the deadline of {self._seconds:g} s has passed"))

    def _listened(self) -> None:
        self._timer = _start_timer(max(0.0, self._deadline - self._clock()), self._expire)

    def _unlistened(self) -> None:
        timer, self._timer = self._timer, _nothing
        timer()


def _call(callback: Callable[[], object]) -> None:
    """Run one callback; its failure harms neither the others nor whoever aborts."""
    try:
        callback()
    except (Exception, SystemExit):
        _log.exception("a callback of an AbortSignal failed: %r", callback)


def _trio_token() -> Any:
    """The token of the trio run in this thread, or ``None``."""
    trio: Any = sys.modules.get("trio")
    if trio is None:
        return None
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None


def _is_trios() -> bool:
    """Whether whoever asks is in trio's hands: not so asyncio's code beside a trio run that is its guest."""
    if _trio_token() is None:
        return False
    if _running_asyncio_loop() is None:
        return True
    import trio

    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def _running_asyncio_loop() -> Any:
    asyncio: Any = sys.modules.get("asyncio")
    return asyncio._get_running_loop() if asyncio is not None else None


def _undo_all(undos: Iterable[Undo]) -> None:
    for undo in undos:
        undo()


def _current_clock() -> tuple[object, Callable[[], float]]:
    """The clock of the running loop, with a reading callable from any thread; monotonic time without a loop."""
    if _is_trios():
        import trio

        clock = trio.lowlevel.current_clock()
        return clock, clock.current_time
    loop = _running_asyncio_loop()
    return (loop, loop.time) if loop is not None else (time, time.monotonic)


def _start_timer(seconds: float, fire: Callable[[], None]) -> Undo:
    """Call ``fire`` after ``seconds``, on the running loop or else on a thread of its own; give back the undo."""
    if _is_trios():
        return _start_trio_timer(seconds, fire)
    loop = _running_asyncio_loop()
    if loop is not None:
        handle = loop.call_later(seconds, fire)
        return lambda: _run_in_asyncio(loop, handle.cancel)
    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), fire)
    timer.daemon = True
    timer.start()
    return timer.cancel


def _start_trio_timer(seconds: float, fire: Callable[[], None]) -> Undo:
    import trio

    scope = trio.CancelScope()
    token = trio.lowlevel.current_trio_token()

    async def tick() -> None:
        with scope:
            await trio.sleep(seconds)
            fire()

    trio.lowlevel.spawn_system_task(tick)

    return lambda: _run_in_trio(token, scope.cancel)


def _run_in_trio(token: Any, fn: Callable[[], object]) -> None:
    """Run ``fn`` in the trio run that ``token`` stands for: at once from inside, soon from another thread."""
    import trio

    if _trio_token() is token:
        fn()
        return
    with contextlib.suppress(trio.RunFinishedError):  # A run that is over has nobody left to wake or to stop.
        token.run_sync_soon(fn)


def _run_in_asyncio(loop: Any, fn: Callable[[], object]) -> None:
    """Run ``fn`` soon in an asyncio loop, from whatever thread."""
    with contextlib.suppress(RuntimeError):  # A loop that is closed has nobody left to wake or to stop.
        loop.call_soon_threadsafe(fn)


async def _wait_in_loop(signal: AbortSignal) -> None:
    if _is_trios():
        await _wait_in_trio(signal)
    else:
        await _wait_in_asyncio(signal)


async def _wait_in_trio(signal: AbortSignal) -> None:
    import trio

    event = trio.Event()
    token = trio.lowlevel.current_trio_token()
    undo = signal.add_callback(lambda: _run_in_trio(token, event.set))
    try:
        await event.wait()
    finally:
        undo()


async def _wait_in_asyncio(signal: AbortSignal) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    undo = signal.add_callback(lambda: _run_in_asyncio(loop, event.set))
    try:
        await event.wait()
    finally:
        undo()
