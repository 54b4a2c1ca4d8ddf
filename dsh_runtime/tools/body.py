"""Running a body: in the loop or in a thread, under one cancel scope that is tied to the call's signal.

Strategy: the cancel scope is entered before the body starts (a scope entered later would corrupt scopes that the body
has opened), but the signal is linked to it only when the body first waits: a body that never waits cannot be
cancelled, and pays for no link. A cancellation of the caller's own scope aborts the call's signal before the body gets
to see it, so that threads and cleanup code that look at the signal know.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import trio
from dsh_hookspecs import AbortError, AbortSignal

from dsh_runtime.core.events import is_async
from dsh_runtime.tools.failures import ORDINARY

#: Starts a body: ``(args, exec, limiter) -> awaitable``.
Runner = Callable[[Any, Any, trio.CapacityLimiter], Awaitable[Any]]


class CallerCancelled(AbortError):
    """The reason of a call's signal when the caller's own trio scope was cancelled."""


class Raised:
    """What a threaded body raised; carried as a value, since a coroutine cannot let every exception through."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


def make_runner(execute: Callable[..., Any]) -> Runner:
    """How ``execute`` is run: awaited if it is async, in a worker thread if it is not."""
    if is_async(execute):
        return lambda args, exec, limiter: execute(args, exec)  # type: ignore[no-any-return]

    async def in_thread(args: Any, exec: Any, limiter: trio.CapacityLimiter) -> Any:
        outcome = await trio.to_thread.run_sync(_contained, execute, args, exec, limiter=limiter)
        if isinstance(outcome, Awaitable):
            outcome = await outcome
        return outcome

    return in_thread


def _contained(execute: Callable[..., Any], args: Any, exec: Any) -> Any:
    try:
        return execute(args, exec)
    except ORDINARY as error:
        return Raised(error)


class Link:
    """Ties a cancel scope to a signal, and watches for the caller's own cancellation."""

    __slots__ = ("_cancel", "_clock", "_own", "_scope", "_signal", "_undo")

    def __init__(
        self, scope: trio.CancelScope, signal: AbortSignal, own: AbortSignal, cancel: Callable[[], object], clock: object
    ) -> None:
        self._scope = scope
        self._signal = signal
        self._own = own
        self._cancel = cancel
        self._clock = clock
        self._undo: Callable[[], None] | None = None

    def tie(self) -> None:
        """Link scope and signal."""
        self._undo, deadline = self._signal.follow(self._cancel, self._clock)
        if deadline < self._scope.deadline:
            self._scope.deadline = deadline

    def untie(self) -> None:
        """Leave no trace on the signal."""
        if self._undo is not None:
            self._undo()

    def note_outer_cancel(self) -> None:
        """If it is the caller's own scope that has been cancelled, abort the call's signal."""
        if not self._scope.cancel_called and _effectively_cancelled(self._scope):
            self._own._abort(CallerCancelled("the caller was cancelled"))


@types.coroutine
def drive(coroutine: Coroutine[Any, Any, Any], link: Link) -> Generator[Any, Any, Any]:
    """Run a coroutine as ``await`` would; tie the link when it first waits."""
    step: Callable[[Any], Any] = coroutine.send
    sent: Any = None
    tied = False
    try:
        while True:
            try:
                trap = step(sent)
            except StopIteration as stop:
                return stop.value
            if not tied:
                tied = True
                link.tie()
            try:
                sent = yield _watched(trap, link)
                step = coroutine.send
            except BaseException as error:
                sent = error
                step = coroutine.throw
    finally:
        if tied:
            link.untie()


def _watched(trap: Any, link: Link) -> Any:
    """The same trap, with a look at who cancels before the cancellation is delivered."""
    abort = getattr(trap, "abort_func", None)
    if abort is None:
        return trap

    def look_then_abort(raise_cancel: Any) -> Any:
        link.note_outer_cancel()
        return abort(raise_cancel)

    return type(trap)(look_then_abort)


def _effectively_cancelled(scope: trio.CancelScope) -> bool:
    # trio tells a task that it has been cancelled, but not by which of the scopes around it; the status knows.
    status: Any = getattr(scope, "_cancel_status", None)
    return bool(status is not None and status.effectively_cancelled)
