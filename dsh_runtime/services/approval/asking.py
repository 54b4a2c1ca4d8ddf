"""One request for approval, from being asked to being decided.

The listener lists are those of the moment of asking. Exactly one ``approval/decided`` is told for each request,
whatever ended it: an answer, the deadline, an abort, a failure, a cancellation from outside.
"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import trio
from attrs import evolve
from dsh_hookspecs import AbortSignal, ApprovalOutcome, ApprovalRequest

from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Listener, emit, waterfall
from dsh_runtime.services.approval.desk import Desk

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber
    from dsh_runtime.core.kernel import Kernel

Decision: TypeAlias = ApprovalOutcome | Literal["failed"]
REQUEST: Final = "approval/request"
OUTCOMES: Final[tuple[ApprovalOutcome, ...]] = get_args(ApprovalOutcome)


class Asking:
    """One request and who hears of it. ``answered_by`` is the plugin whose answer stands, once there is one."""

    def __init__(self, kernel: Kernel, request: ApprovalRequest, desk: Desk) -> None:
        self.request = request
        self.scopes = kernel.scopes.chain(request.exec.agent)
        self.answered_by: str | None = None
        self._desk = desk
        self._host = kernel.root
        self._event = kernel.events.get(REQUEST, self._host.id)
        hearing = kernel.scopes.hearing(request.exec.agent)
        self._channels = kernel.events.listeners(REQUEST, hearing)
        self._asked = kernel.events.listeners("approval/asked", hearing)
        self._decided = kernel.events.listeners("approval/decided", hearing)

    def is_heard_by(self, fiber: Fiber) -> bool:
        """Whether a channel of this plugin is asked, or may be."""
        return any(listener.fiber is fiber for listener in self._channels)

    def leave_unasked(self) -> ApprovalOutcome:
        """Decide without asking anybody."""
        self._tell("unavailable")
        return "unavailable"

    async def outcome(self) -> ApprovalOutcome:
        """Ask, and tell what was asked and decided."""
        decision: Decision = "failed"
        try:
            emit(self._asked, self.request)
            outcome = decision = await self._in_time()
        except BaseException as error:
            self.answered_by = None
            if _is_cancellation(error):
                decision = "cancelled"
            raise
        finally:
            self._tell(decision)
        return outcome

    async def _in_time(self) -> ApprovalOutcome:
        """The answer, if it comes before the deadline and before the call is aborted."""
        seconds, signal = self.request.deadline, self.request.exec.signal
        outcome: ApprovalOutcome | None = None
        with (
            trio.move_on_after(math.inf if seconds is None else seconds) as limit,
            _cancelled_by(signal, limit),
        ):
            outcome = await self._answer()
        late = limit.cancel_called or (signal.aborted and outcome == "allowed-once")
        if outcome is not None and not late:
            return outcome
        # A channel that answers although it was told to stop has come too late.
        self.answered_by = None
        return "cancelled" if signal.aborted else "expired"

    async def _answer(self) -> ApprovalOutcome:
        channels = [self._noting(listener) for listener in self._channels]
        if self._desk.is_attended(self.scopes):
            channels.append(self._at_desk())
        answer: ApprovalOutcome = await waterfall(self._event, channels, (self.request,), "unavailable")
        return answer

    def _noting(self, listener: Listener) -> Listener:
        """The listener, with a note of who has answered when what it says is not just what ``next()`` gave."""

        async def call(request: ApprovalRequest, next: Any) -> ApprovalOutcome:
            answer = listener.call(request, next)
            while inspect.isawaitable(answer):
                answer = await answer
            if isinstance(answer, str) and answer not in OUTCOMES:
                raise HookError(
                    f"{listener.where} answered {REQUEST!r} with {answer!r:.200}; "
                    f"return one of {', '.join(OUTCOMES)}, or what next() gave"
                )
            if not (next.answered and next.answer == answer):
                self.answered_by = listener.plugin
            return answer  # type: ignore[no-any-return]  # the chain checks what is no text

        return evolve(listener, call=call)

    def _at_desk(self) -> Listener:
        """The innermost channel."""

        async def wait(request: ApprovalRequest, next: Callable[[], Awaitable[ApprovalOutcome]]) -> ApprovalOutcome:
            answer = await self._desk.wait(request, self.scopes)
            if answer is None:
                return await next()
            self.answered_by = answer.by
            return answer.outcome

        return Listener(wait, wait, REQUEST, self._host.id, self._host)

    def _tell(self, decision: Decision) -> None:
        emit(self._decided, self.request, decision, self.answered_by)


def _is_cancellation(error: BaseException) -> bool:
    """Whether an exception is a cancellation from outside and nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


@contextlib.contextmanager
def _cancelled_by(signal: AbortSignal, scope: trio.CancelScope) -> Iterator[None]:
    """Cancel ``scope`` when ``signal`` is aborted, from whatever thread."""
    token = trio.lowlevel.current_trio_token()

    def cancel() -> None:
        with contextlib.suppress(trio.RunFinishedError):  # Nobody is left to be cancelled.
            token.run_sync_soon(scope.cancel)

    undo = signal.add_callback(cancel)
    try:
        yield
    finally:
        undo()
