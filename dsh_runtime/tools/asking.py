"""Asking a person about a call, and what becomes of the answer."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

import trio
from dsh_hookspecs import ApprovalRequest, ToolExecutionFailure

from dsh_runtime.core.chain import listener_of
from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Listener
from dsh_runtime.tools.dispatch import aborted
from dsh_runtime.tools.failures import ORDINARY, ListenerFailed, failure, message_of, shown, sole
from dsh_runtime.tools.presentation import present_call
from dsh_runtime.tools.story import UNANSWERED

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call

_DENIED: Final = {
    "rejected": ("APPROVAL_REJECTED", "a person was asked and said no"),
    "expired": ("APPROVAL_EXPIRED", "a person was asked and did not answer in time"),
    "cancelled": ("APPROVAL_CANCELLED", "the question to a person was cancelled"),
    "unavailable": ("APPROVAL_UNAVAILABLE", "a person has to be asked, and nobody can be reached"),
}


async def ask(call: Call, reason: str | None, listener: Listener | None) -> ToolExecutionFailure | None:
    """Put the question to the approval service, once; ``None`` if a person allowed this very call."""
    began, words = perf_counter(), UNANSWERED
    try:
        outcome = await _outcome(call, reason)
        words = outcome, reason
    finally:
        if call.notes is not None:
            call.notes.append(("approval", None, None, words, began, perf_counter()))
    if outcome == "allowed-once":
        return None
    if outcome == "cancelled" and call.signal.aborted:
        return aborted(call.signal, began=False)
    code, message = _DENIED[outcome]
    if call.exec.agent is None and outcome == "unavailable":
        message = "a person has to be asked, and the call has no agent to ask for"
    plugin = listener.plugin if listener is not None else None
    text = f"{message} ({reason})" if reason else message
    return failure(text, code=code, name="ApprovalDenied", plugin=plugin)


async def _outcome(call: Call, reason: str | None) -> str:
    """The outcome of asking. An approval service that fails, or answers something else, fails the call."""
    service = call.machine.approval()
    if service is None or call.exec.agent is None:
        return "unavailable"
    view = present_call(call.tool.definition if call.tool is not None else None, call.exec)
    request = ApprovalRequest(call.exec, reason, view, digest=call.exec.digest)
    scope = trio.CancelScope()
    undo = call.signal.add_callback(call.machine.canceller(scope))
    try:
        with scope:
            outcome = await service.request(request)
    except ORDINARY as error:
        raise _failed(error) from error
    finally:
        undo()
    if scope.cancelled_caught:
        return "cancelled"
    if not isinstance(outcome, str) or (outcome != "allowed-once" and outcome not in _DENIED):
        text = f"the approval service answered with {shown(outcome)}, which is no outcome"
        raise ListenerFailed("approval", text)
    return outcome


def _failed(error: BaseException) -> ListenerFailed:
    """The failure of the approval service, or of the channel that is to blame."""
    cause = sole(error)
    listener = listener_of(error)
    if isinstance(cause, HookError) and listener is not None:
        # A channel that gives rubbish: the core's message says it all.
        return ListenerFailed(listener.plugin, str(cause))
    who = listener.where if listener is not None else "the approval service"
    text = f"{who} raised {type(cause).__name__} when asked for approval: {message_of(cause)}"
    return ListenerFailed(listener.plugin if listener is not None else "approval", text, error)
