"""Cancel scopes that are entered only when what they are for first waits: a body, a stage of policy, the record.

What never waits cannot be cancelled, so it needs no scope; entering and leaving one would be a third of a small call.
But a scope that is entered late must not end up inside those that a body has opened by then.

Strategy: trio keeps a task's scopes as a chain of statuses, and has a setter for a status's parent (``TaskStatus``
moves nurseries with it). A late scope is entered at the end of the chain, as any other, and then moved beneath what
the body has opened, where it would stand had it been entered first. Nothing can be delivered meanwhile: the task is
running. With a trio of which that is not known, the scope is entered first.
"""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import trio
from dsh_hookspecs import AbortError, AbortSignal

from dsh_runtime.tools.body import drive, is_cancelled
from dsh_runtime.tools.failures import Raised

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call

#: The versions of trio with which late scopes have been tried; any other one gets the scope first.
_OLDEST, _NEWEST = (0, 30), (0, 35)
#: The outcome of a body whose scope has swallowed its cancellation: the signal has stopped it.
STOPPED = Raised(AbortError("the body was stopped"))


class LateScope:
    """A cancel scope in the place that it would have, had it been entered when the task's chain ended in ``before``."""

    __slots__ = ("_before", "_scope")

    def __init__(self, before: Any) -> None:
        self._before = before
        self._scope = trio.CancelScope()

    @trio.lowlevel.enable_ki_protection
    def __enter__(self) -> trio.CancelScope:
        task: Any = trio.lowlevel.current_task()
        innermost = task._cancel_status
        scope: Any = self._scope.__enter__()
        outermost = innermost if innermost is not self._before else None
        while outermost is not None and outermost.parent is not self._before:
            outermost = outermost.parent
        if outermost is not None:
            task._activate_cancel_status(innermost)
            scope._cancel_status.parent = self._before
            outermost.parent = scope._cancel_status
        return self._scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return bool(self._scope.__exit__(kind, error, traceback))


@types.coroutine
def run_late(coroutine: Coroutine[Any, Any, Any], signal: AbortSignal, call: Call) -> Generator[Any, Any, Any]:
    """Run a coroutine; if it waits, within a scope of its own that is tied to ``signal``."""
    task: Any = trio.lowlevel.current_task()
    before = task._cancel_status
    if before.effectively_cancelled:
        yield from _end_before(coroutine, call)
    try:
        trap = coroutine.send(None)
    except BaseException as ended:
        if task._cancel_status is not before:
            # It has left a scope open: trio tells so when the scope around it is left.
            with LateScope(before):
                raise
        if type(ended) is StopIteration:
            return ended.value
        raise
    with LateScope(before) as scope:
        return (yield from drive(coroutine, trap, scope, signal, call))
    return STOPPED


@types.coroutine
def run_scoped(coroutine: Coroutine[Any, Any, Any], signal: AbortSignal, call: Call) -> Generator[Any, Any, Any]:
    """The same with the scope entered first, for a trio whose chain of scopes is kept otherwise."""
    with trio.CancelScope() as scope:  # noqa: ASYNC100 - a generator-based coroutine waits with "yield from"
        if is_cancelled(scope):
            yield from _end_before(coroutine, call)
        try:
            trap = coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        return (yield from drive(coroutine, trap, scope, signal, call))
    return STOPPED


@types.coroutine
def _end_before(coroutine: Coroutine[Any, Any, Any], call: Call) -> Generator[Any, Any, None]:
    """The caller is cancelled, though a listener may have kept that to itself: the body does not begin."""
    coroutine.close()
    if call.dispatch is not None and call.dispatch.context is not None:
        call.dispatch.context.began = False
    yield from trio.lowlevel.checkpoint().__await__()  # noqa: ASYNC105 - this is the await, and it raises


@types.coroutine
def within_late(
    coroutine: Coroutine[Any, Any, Any], seconds: float, shield: bool = False
) -> Generator[Any, Any, trio.CancelScope | None]:
    """Run a coroutine; if it waits, within a scope that gives it so many seconds from then on. Gives that scope."""
    task: Any = trio.lowlevel.current_task()
    before = task._cancel_status
    if shield and before.effectively_cancelled:
        # What waits would be told so before it waits, while no shield is there yet.
        return (yield from within_scoped(coroutine, seconds, shield))
    try:
        trap = coroutine.send(None)
    except BaseException as ended:
        if task._cancel_status is not before:
            with LateScope(before):
                raise
        if type(ended) is StopIteration:
            return None
        raise
    with LateScope(before) as scope:
        scope.deadline, scope.shield = trio.current_time() + seconds, shield
        yield from driven(coroutine, trap)
    return scope


@types.coroutine
def within_scoped(
    coroutine: Coroutine[Any, Any, Any], seconds: float, shield: bool = False
) -> Generator[Any, Any, trio.CancelScope | None]:
    """The same with the scope entered first."""
    with trio.CancelScope(deadline=trio.current_time() + seconds, shield=shield) as scope:  # noqa: ASYNC100 - it waits
        try:
            trap = coroutine.send(None)
        except StopIteration:
            return scope
        yield from driven(coroutine, trap)
    return scope


def driven(coroutine: Coroutine[Any, Any, Any], trap: Any) -> Generator[Any, Any, Any]:
    """Run a coroutine that has begun to wait, with ``trap``, as ``await`` would; give what it returns."""
    try:
        while True:
            try:
                sent = yield trap
            except BaseException as error:
                trap = coroutine.throw(error)
            else:
                trap = coroutine.send(sent)
    except StopIteration as ended:
        return ended.value


def _keeps_a_chain() -> bool:
    """Whether this is a trio of which it is known that it keeps a task's scopes as :class:`LateScope` needs them."""
    if not _OLDEST <= _version(trio.__version__) <= _NEWEST:
        return False
    status: Any = getattr(getattr(trio._core, "_run", None), "CancelStatus", None)
    parent = getattr(status, "parent", None)
    return (
        isinstance(parent, property)
        and parent.fset is not None
        and hasattr(trio.lowlevel.Task, "_cancel_status")
        and hasattr(trio.lowlevel.Task, "_activate_cancel_status")
        and hasattr(trio.CancelScope, "_cancel_status")
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


if _keeps_a_chain():
    run_body, within = run_late, within_late
else:
    run_body, within = run_scoped, within_scoped
