"""The channel: one question at a time, in the order in which they came, beside whatever channels stand behind it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import trio
from dsh_hookspecs import ApprovalOutcome, ApprovalRequest, Context

_log = logging.getLogger(__name__)

Next: TypeAlias = Callable[[], Awaitable[ApprovalOutcome]]


def apply(ctx: Context) -> None:
    """Ask at the terminal, and the channels behind at the same time; the first answer counts."""
    turn = trio.Lock()

    async def ask(request: ApprovalRequest, next: Next) -> ApprovalOutcome:
        from dsh_runtime import first_answer

        return await first_answer(next, partial(_ask_in_turn, ctx, turn, request))

    ctx.on("approval/request", ask)


async def _ask_in_turn(ctx: Context, turn: trio.Lock, request: ApprovalRequest) -> ApprovalOutcome:
    from dsh_plugin_approval_terminal._prompt import ask_person
    from dsh_plugin_approval_terminal._question import question_of
    from dsh_plugin_approval_terminal._terminal import NoTerminalError

    deadline = trio.current_effective_deadline()
    async with turn:
        try:
            return await ask_person(question_of(ctx, request), request.exec.signal, deadline)
        except NoTerminalError as error:
            _log.info("nobody is asked at the terminal about tool %r: %s", request.exec.name, error)
            return "unavailable"
