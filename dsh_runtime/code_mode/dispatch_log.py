"""The record of a program's sub-calls: that each begins, and what the log is to keep of its end.

What is kept passes the ``tools/code-dispatch-log`` waterfall first. A listener that fails, takes too long or gives
what is no content leaves the original. The events cost no commit of their own: a start is committed with the sub-call
itself, before any policy sees it, an end with the next record, the outer call's result at the latest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import evolve
from dsh_hookspecs import CodeDispatchLog, Content, ToolExecution

from dsh_runtime.core.events import Listener, waterfall
from dsh_runtime.tools.failures import ORDINARY, text_content
from dsh_runtime.tools.results import frozen_content

if TYPE_CHECKING:
    from dsh_runtime.core.context import Context
    from dsh_runtime.tools.machine import Machine

EVENT: Final = "tools/code-dispatch-log"
#: How long the listeners have together, where the host sets no ``policy_timeout``.
_PATIENCE: Final = 30.0
_GIVEN_UP: Final = "Error: the program gave up on the call"
_log = logging.getLogger("dsh.code_mode")


class DispatchLog:
    """Keeps the record of one program's sub-calls. ``exec`` is the outer execution."""

    def __init__(self, ctx: Context, machine: Machine, exec: ToolExecution) -> None:
        # A host does not unload its log while a call that is on record is under way.
        self._sessions: Any = ctx.get("sessions")
        self._machine = machine
        self._exec = exec
        call = machine.calls.get(exec.token)
        self._chain = call.pipeline.chain if call is not None else ()
        self._open: set[str] = set()

    def started(self, sub_call_id: str, name: str) -> None:
        """The program calls a tool."""
        if self._sessions is not None:
            self._sessions.code_dispatch_start(self._exec, sub_call_id, name)
        self._open.add(sub_call_id)

    async def ended(self, sub_call_id: str, name: str, is_error: bool, content: Content) -> None:
        """The sub-call has come to rest; of one that never began, or has ended, there is nothing to say.

        Whoever is cancelled meanwhile has to wait until that is on record.
        """
        if sub_call_id not in self._open:
            return
        self._open.discard(sub_call_id)
        listeners = self._machine.kernel.events.listeners(EVENT, self._chain)
        if not listeners and self._sessions is None:
            return
        dispatch = CodeDispatchLog(self._exec, self._exec.agent, sub_call_id, name, is_error, content)
        with trio.CancelScope(shield=True):
            if listeners:
                dispatch = evolve(dispatch, content=await self._reviewed(dispatch, listeners))
            if self._sessions is not None:
                await self._sessions.code_dispatch(dispatch)

    async def given_up(self, sub_call_id: str, name: str) -> None:
        """The program has given up on the sub-call."""
        await self.ended(sub_call_id, name, True, text_content(_GIVEN_UP))

    async def _reviewed(self, dispatch: CodeDispatchLog, listeners: Sequence[Listener]) -> Content:
        """The content that listeners want kept, or the original."""
        settings = self._machine.settings
        try:
            with trio.fail_after(settings.policy_timeout or _PATIENCE):
                args: tuple[Any, ...] = (dispatch,)
                event = self._machine.kernel.events.get(EVENT, "host")
                kept = await waterfall(event, listeners, args, dispatch.content)
            return frozen_content(kept, f"a listener of {EVENT!r}", settings.max_depth)
        except ORDINARY:
            _log.exception("%r failed for sub-call %r; the log keeps the original", EVENT, dispatch.sub_call_id)
            return dispatch.content
