"""The desk: where requests for approval wait for an answer from outside the chain of channels.

A request waits here only while somebody offers to answer; when the last offer goes, nobody is there to wait for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

import trio
from attrs import define, field, frozen
from dsh_hookspecs import ApprovalOutcome, ApprovalRequest

from dsh_runtime.core.errors import ServiceError

if TYPE_CHECKING:
    from dsh_runtime.core.kernel import Kernel

OFFER: Final = "approval-offer"
ANSWERS: Final = ("allowed-once", "rejected", "cancelled")
Scopes: TypeAlias = tuple[Hashable, ...]


@frozen(eq=False)
class PendingApproval:
    """A request that waits for an answer, under an opaque id."""

    id: str
    request: ApprovalRequest


@frozen(eq=False)
class Offer:
    """A plugin that answers from outside the chain, and how it hears of requests."""

    plugin: str
    notify: Callable[[PendingApproval], None] | None


@frozen
class Answer:
    """An answer, and the plugin that brought it."""

    outcome: ApprovalOutcome
    by: str


@define(eq=False)
class _Waiting:
    """A request at the desk. ``answer`` stays ``None`` if nobody is left to give one."""

    pending: PendingApproval
    scopes: Scopes
    done: trio.Event = field(factory=trio.Event)
    answer: Answer | None = None


class Desk:
    """The requests that wait, by id."""

    def __init__(self, kernel: Kernel) -> None:
        self._ledger = kernel.ledger
        self._waiting: dict[str, _Waiting] = {}

    def open(self) -> Callable[[], None]:
        """Begin to watch the offers; give back the undo."""
        return self._ledger.watch(OFFER, lambda offers: self._dismiss())

    def is_attended(self, scopes: Scopes) -> bool:
        """Whether somebody offers to answer for a call of these scopes."""
        return bool(self._offers(scopes))

    async def wait(self, request: ApprovalRequest, scopes: Scopes) -> Answer | None:
        """Wait for an answer; ``None`` when nobody is there any more to give it."""
        waiting = _Waiting(PendingApproval(secrets.token_urlsafe(16), request), scopes)
        self._waiting[waiting.pending.id] = waiting
        try:
            for offer in self._offers(scopes):
                if offer.notify is not None:
                    offer.notify(waiting.pending)
            self._dismiss()
            await waiting.done.wait()
        finally:
            self._waiting.pop(waiting.pending.id, None)
        return waiting.answer

    def pending(self, scope: Hashable | None) -> Sequence[PendingApproval]:
        """The requests that wait; those of ``scope`` and below it, if there is one."""
        return tuple(waiting.pending for waiting in self._waiting.values() if _concerns(waiting, scope))

    def answer(self, scope: Hashable | None, approval_id: str, digest: str, outcome: ApprovalOutcome, by: str) -> bool:
        """Take an answer; whether it counts. The first one does, if it is about the same call."""
        if outcome not in ANSWERS:
            wanted = ", ".join(ANSWERS)
            raise ServiceError(f"plugin {by!r} answers a request with {outcome!r:.100}; give one of {wanted}")
        waiting = self._waiting.get(approval_id)
        if waiting is None or not _concerns(waiting, scope) or waiting.pending.request.digest != digest:
            return False
        del self._waiting[approval_id]
        waiting.answer = Answer(outcome, by)
        waiting.done.set()
        return True

    def _offers(self, scopes: Scopes) -> list[Offer]:
        return [entry.value for entry in self._ledger.resolve(OFFER, (None, *scopes))]

    def _dismiss(self) -> None:
        """Let go of the requests that nobody offers to answer any more."""
        for waiting in tuple(self._waiting.values()):
            if not self.is_attended(waiting.scopes):
                del self._waiting[waiting.pending.id]
                waiting.done.set()


def _concerns(waiting: _Waiting, scope: Hashable | None) -> bool:
    return scope is None or scope in waiting.scopes
