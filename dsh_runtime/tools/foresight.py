"""Asking policy beforehand what it would say about a call: no person, no body, no record (``exec.dry_run`` is true)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import frozen
from dsh_hookspecs import Ask, Deny, JsonValue, ToolErrorInfo, ToolExecutionFailure

from dsh_runtime.tools.dispatch import unknown_tool
from dsh_runtime.tools.failures import ListenerFailed, failure_of_listener
from dsh_runtime.tools.policy import PRE, PolicyChain, Ruling
from dsh_runtime.tools.story import Story

if TYPE_CHECKING:
    from dsh_runtime.tools.call import Call


@frozen
class Foresight:
    """What policy would say about a call: ``allow``, ``ask`` or ``refuse``, why, who decided, and the story of it."""

    verdict: Literal["allow", "ask", "refuse"]
    reason: str | None
    info: ToolErrorInfo | None
    story: list[dict[str, JsonValue]]


async def foresee(call: Call) -> Foresight:
    """Take a call through entry, ``tools/pre-execute`` and guards, and no further."""
    call.notes = []
    refused: ToolExecutionFailure | Ask | None = call.enter(dry_run=True)
    machine = call.machine
    machine.calls[call.token] = call
    try:
        if refused is None:
            refused = await _objection(call)
    except ListenerFailed as failed:
        refused = failure_of_listener(failed)
    finally:
        del machine.calls[call.token]
    if isinstance(refused, Ask):
        return Foresight("ask", refused.reason, None, Story(call.notes).as_json())
    if refused is None:
        return Foresight("allow", None, None, Story(call.notes).as_json())
    return Foresight("refuse", refused.error.message, refused.error.info, Story(call.notes).as_json())


async def _objection(call: Call) -> ToolExecutionFailure | Ask | None:
    """What stands against the call, ``None`` if nothing does."""
    pre, asked = call.pipeline.pre, None
    if pre:
        rulings: list[Ruling] = []
        await PolicyChain(PRE, pre, call.exec, None, call.notes).decide(call.machine.settings.policy_timeout, rulings)
        decision, listener = rulings[0]
        if type(decision) is Deny:
            return await call.objection(decision, listener)
        asked = decision if type(decision) is Ask else None
    denied = call.guarded()
    if denied is None and call.tool is None:
        denied = unknown_tool(call)
    return asked if denied is None else denied
