"""The service ``approval``: puts a question about one call to whoever can answer it.

Channels are listeners of the ``approval/request`` waterfall, filtered by the call's scope; behind the last of them
stands the desk, for answers that come from outside the chain. Where nobody answers, the outcome is ``unavailable``.

What is put to a channel always carries the digest of the call's name and arguments, and an answer is for that alone.
The deadline goes by the event loop's clock, which only runs forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

import trio
from attrs import evolve, frozen
from dsh_hookspecs import ApprovalOutcome, ApprovalRequest, HarnessError

from dsh_runtime.core.context import Context
from dsh_runtime.core.events import FIRST, listener_table
from dsh_runtime.core.services import Service
from dsh_runtime.services.approval.asking import REQUEST, Asking
from dsh_runtime.services.approval.desk import OFFER, Desk, Offer, PendingApproval
from dsh_runtime.tools.execution import digest_of

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber

Policy: TypeAlias = Literal["ask", "never"]
Undo: TypeAlias = Callable[[], None]


class ApprovalError(HarnessError):
    """A question that cannot be put: it is not about the call that it says it is about."""

    default_code = "APPROVAL_INVALID"


@frozen
class ApprovalSettings:
    """Whether anybody is asked, and for how many seconds at most (``None``: for as long as it takes)."""

    policy: Policy = "ask"
    timeout: float | None = 300.0


class Approval(Service):
    """Asks the channels. Every request is told as ``approval/asked`` and ``approval/decided``."""

    name: ClassVar[str] = "approval"

    def __init__(self, settings: ApprovalSettings | None = None) -> None:
        self._settings = settings if settings is not None else ApprovalSettings()
        self._desk: Desk
        #: The questions that are open, and when each is over.
        self._open: dict[Asking, trio.Event] = {}

    def start(self) -> None:
        """Set up the desk."""
        self._desk = Desk(self.ctx.fiber.kernel)
        self.ctx.effect(self._desk.open)
        kernel = self.ctx.fiber.kernel
        self.ctx.effect(lambda: kernel.add_drainer(self._drain))

    def take_up(self, settings: ApprovalSettings) -> None:
        """Ask, from the next request on, as other settings say."""
        self._settings = settings

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Ask once; the answer counts for the name and arguments of ``request.exec`` alone."""
        asking = Asking(self.ctx.fiber.kernel, _bound(request, self._settings.timeout), self._desk)
        if self._settings.policy == "never":
            return asking.leave_unasked()
        over = self._open[asking] = trio.Event()
        try:
            return await asking.outcome()
        finally:
            del self._open[asking]
            over.set()

    def has_channel(self) -> bool:
        """Whether the host has somebody to ask. A listener in front of the others (``prepend``) only wraps them."""
        listeners = self.ctx.fiber.kernel.ledger.resolve(listener_table(REQUEST), (None,))
        return any(entry.band != FIRST for entry in listeners) or self._desk.is_attended(())

    async def _drain(self, fiber: Fiber) -> None:
        """Let the channels of a plugin that unloads have their answers, up to a deadline."""
        tools = self.ctx.get("tools")
        with trio.move_on_after(tools.machine.settings.drain_timeout if tools is not None else 0):
            for asking, over in [*self._open.items()]:
                if asking.is_heard_by(fiber):
                    await over.wait()

    # Answers from outside the chain.

    def offer(self, notify: Callable[[PendingApproval], None] | None = None) -> Undo:
        """Say that the calling plugin answers with :meth:`answer`; give back the undo.

        Only while somebody offers, for the scope of a call or the whole host, does a request wait to be answered so.
        ``notify`` is called with each; that it no longer waits is told as ``approval/decided``.
        """
        undo: Undo = self.ctx.register(OFFER, Offer(self.ctx.fiber.id, notify))
        return undo

    def pending(self) -> Sequence[PendingApproval]:
        """The requests that wait for :meth:`answer`, the oldest first; of the calling scope, if there is one."""
        return self._desk.pending(self.ctx.scope_key)

    def answer(self, approval_id: str, digest: str, outcome: ApprovalOutcome) -> bool:
        """Answer a pending request: ``allowed-once``, ``rejected`` or ``cancelled``; whether the answer counts.

        It does not if the request waits no longer, has been answered, or is about a call with another digest.
        """
        return self._desk.answer(self.ctx.scope_key, approval_id, digest, outcome, by=self.ctx.fiber.id)


def _bound(request: ApprovalRequest, longest: float | None) -> ApprovalRequest:
    """The request with the digest of its call, and with a deadline that is no later than the host's own."""
    digest = digest_of(request.exec.name, request.exec.arguments)
    if request.digest not in ("", digest):
        raise ApprovalError(
            f"the request about tool {request.exec.name!r} carries the digest {request.digest!r:.80}, but the call's "
            f"name and arguments have {digest!r}; ask with the digest of the call that is to run"
        )
    limits = [limit for limit in (request.deadline, longest) if limit is not None]
    return evolve(request, digest=digest, deadline=min(limits, default=None))


def install(ctx: Context, settings: ApprovalSettings | None = None) -> None:
    """Give a kernel the service ``approval``, as the host's own."""
    service = Approval(settings)
    service.ctx = ctx
    service.start()
    ctx.provide("approval", service)
