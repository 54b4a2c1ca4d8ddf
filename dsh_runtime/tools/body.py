"""Running a body: in the loop or in a thread, under one cancel scope that is tied to the call's signal.

Strategy: scope and link are made only when the body first waits; a body that never waits cannot be cancelled, and pays
for neither (:mod:`~dsh_runtime.tools.scope` says how a scope can be entered late). A cancellation of the caller's own
scope aborts the call's signal before the body gets to see it, so that threads and cleanup code that look at the signal
know.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

import trio
from dsh_hookspecs import AbortError, AbortSignal

from dsh_runtime.core.events import is_async
from dsh_runtime.tools.failures import ORDINARY, Raised
from dsh_runtime.tools.threads import Threads

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call
    from dsh_runtime.tools.execution import RunContext

#: Starts a body: ``(args, exec, threads) -> coroutine``.
Runner: TypeAlias = Callable[[Any, Any, Threads], Coroutine[Any, Any, Any]]


class CallerCancelled(AbortError):  # noqa: N818 - a reason, rarely raised
    """The reason of a call's signal when the caller's own trio scope was cancelled."""


def make_runner(execute: Callable[..., Any]) -> Runner:
    """How ``execute`` is run: awaited if it is async, in a worker thread if it is not."""
    if is_async(execute):

        def in_loop(args: Any, exec: RunContext, threads: Threads) -> Coroutine[Any, Any, Any]:
            exec.began = True
            return execute(args, exec)  # type: ignore[no-any-return]

        return in_loop

    async def in_thread(args: Any, exec: RunContext, threads: Threads) -> Any:
        outcome = await threads.run(_contained, execute, args, exec)
        if isinstance(outcome, Awaitable):
            outcome = await outcome
        return outcome

    return in_thread


def _contained(execute: Callable[..., Any], args: Any, exec: RunContext) -> Any:
    exec.began = True
    try:
        return execute(args, exec)
    except ORDINARY as error:
        return Raised(error)


class Link:
    """Ties a cancel scope to the signal that a body sees, and watches for the caller's own cancellation."""

    __slots__ = ("_call", "_scope", "_undo")

    def __init__(self, scope: trio.CancelScope, signal: AbortSignal, call: Call) -> None:
        self._scope = scope
        self._call = call
        self._undo, deadline = signal.follow(call.machine.canceller(scope), call.machine.clock)
        if deadline < scope.deadline:
            scope.deadline = deadline

    def untie(self) -> None:
        """Leave no trace on the signal."""
        self._undo()

    def look(self) -> None:
        """If it is the caller's own scope that has been cancelled, abort the call's signal."""
        if not self._scope.cancel_called and is_cancelled(self._scope):
            self._call.signal._abort(CallerCancelled("the caller was cancelled"))

    def watched(self, trap: Any) -> Any:
        """The same trap, with a look at who cancels before the cancellation is delivered."""
        abort = getattr(trap, "abort_func", None)
        if abort is None:
            return trap

        def abort_then_look(raise_cancel: Any) -> Any:
            # In this order: the body may wait for the very signal that the look aborts, and is woken only once.
            outcome = abort(raise_cancel)
            self.look()
            return outcome

        return type(trap)(abort_then_look)


@types.coroutine
def drive(
    coroutine: Coroutine[Any, Any, Any], trap: Any, scope: trio.CancelScope, signal: AbortSignal, call: Call
) -> Generator[Any, Any, Any]:
    """Run a coroutine that has begun to wait, with ``trap``, as ``await`` would; ``scope`` is tied to ``signal``."""
    link = Link(scope, signal, call)
    try:
        while True:
            try:
                sent = yield link.watched(trap)
            except BaseException as error:
                trap = coroutine.throw(error)
            else:
                trap = coroutine.send(sent)
    except StopIteration as stop:
        return stop.value
    finally:
        link.look()
        link.untie()


def is_cancelled(scope: trio.CancelScope) -> bool:
    """Whether whoever waits in a scope that has been entered is told that it is cancelled."""
    # trio tells a task that it has been cancelled, but not by which of the scopes around it; the status knows.
    status: Any = getattr(scope, "_cancel_status", None)
    return bool(status is not None and status.effectively_cancelled)
