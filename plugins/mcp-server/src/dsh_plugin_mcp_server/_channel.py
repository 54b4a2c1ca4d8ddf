"""The approval channel of one session: its client's own user."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from attrs import frozen
from dsh_hookspecs import ApprovalOutcome, ApprovalRequest, Context
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from dsh_plugin_mcp_server._calls import Ask, Calls
from dsh_plugin_mcp_server._elicitation import message_of, outcome_of
from dsh_runtime import first_answer

_log = logging.getLogger(__name__)

Next: TypeAlias = Callable[[], Awaitable[ApprovalOutcome]]


@frozen
class ElicitationChannel:
    """Asks about the session's calls, and those nested in them, if their client can be asked."""

    ctx: Context
    calls: Calls

    async def approve(self, request: ApprovalRequest, next: Next) -> ApprovalOutcome:
        """Listener of ``approval/request``. The channels behind are asked at the same time."""
        call = self.calls.get(request.exec.root_call_id)
        if call is None or call.ask is None:
            return await next()
        return await first_answer(next, partial(self._elicit, call.ask, request))

    async def _elicit(self, ask: Ask, request: ApprovalRequest) -> ApprovalOutcome:
        message = message_of(self.ctx, request)
        try:
            return outcome_of(await ask(message))
        except (MCPError, ValidationError) as error:
            _log.info("the MCP client could not ask its user about tool %r: %s", request.exec.name, error)
            return "unavailable"
