"""Asking through several channels at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import trio
from dsh_hookspecs import ApprovalOutcome

Channel: TypeAlias = Callable[[], Awaitable[ApprovalOutcome]]

#: Of answers that come in the same breath the stricter one stands.
_STRICTEST_FIRST: Final[tuple[ApprovalOutcome, ...]] = ("rejected", "cancelled", "expired", "allowed-once")


async def first_answer(*channels: Channel) -> ApprovalOutcome:
    """Ask through all of ``channels`` at once; the first answer stands, and the others are cancelled.

    ``unavailable`` is no answer: it is the outcome only where all say so. A channel that fails fails the whole
    question. A listener that has a prompt of its own asks with ``await first_answer(next, prompt)``.
    """
    answers: list[ApprovalOutcome] = []
    failures: list[Exception | SystemExit] = []

    async def ask(channel: Channel) -> None:
        try:
            answer = await channel()
        except (Exception, SystemExit) as error:
            failures.append(error)
        else:
            if answer == "unavailable":
                return
            answers.append(answer)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for channel in channels:
            nursery.start_soon(ask, channel)
    if failures:
        raise failures[0]
    return min(answers, key=_leniency) if answers else "unavailable"


def _leniency(answer: ApprovalOutcome) -> int:
    # What is no outcome stands before all, for the host to refuse.
    return _STRICTEST_FIRST.index(answer) if answer in _STRICTEST_FIRST else -1
