"""The record of a call: before any policy sees it, and with its result before anybody hears of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio
from dsh_hookspecs import ToolExecutionFailure, ToolExecutionResult

from dsh_runtime.tools.failures import ORDINARY, failure, failure_of, message_of, sole
from dsh_runtime.tools.scope import within
from dsh_runtime.tools.story import Story

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call
    from dsh_runtime.tools.registry import Journal

#: How long a result may wait to be put on record, in seconds.
_TIMEOUT: Final = 30.0


async def put_on_record(
    call: Call, journal: Journal, refused: ToolExecutionFailure | None
) -> ToolExecutionFailure | None:
    """Have the call on record before any policy sees it; a journal that fails refuses the call."""
    call.notes = []
    try:
        waiting = journal.called(call.exec)
        if waiting is not None:
            await waiting
    except ORDINARY as error:
        return refused or failure_of(error, plugin=None, default_code="LOG_UNAVAILABLE")
    return refused


async def recorded(call: Call, journal: Journal, result: ToolExecutionResult) -> ToolExecutionResult:
    """Have the result on record before anybody hears of it; without that, nobody gets it."""
    story = Story(call.notes) if call.notes is not None else None
    try:
        waiting = journal.finished(call.exec, result, story)
        if waiting is not None:
            scope = await within(waiting, _TIMEOUT, shield=True)
            if scope is not None and scope.cancelled_caught:
                raise trio.TooSlowError(f"that took more than {_TIMEOUT:g} s")
    except ORDINARY as error:
        text = f"the result is withheld, since it could not be put on record: {message_of(sole(error))}"
        return failure(text, code="LOG_UNAVAILABLE", name=type(sole(error)).__name__)
    return result
