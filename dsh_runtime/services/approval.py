"""The service ``approval``: puts a question about one call to whatever channel can reach a person.

Channels are listeners of the ``approval/request`` waterfall. Where none answers, the outcome is ``unavailable``.
"""

from __future__ import annotations

from typing import ClassVar

from dsh_hookspecs import ApprovalOutcome, ApprovalRequest

from dsh_runtime.core.services import Service


class Approval(Service):
    """Asks the channels in order."""

    name: ClassVar[str] = "approval"

    async def request(self, request: ApprovalRequest) -> ApprovalOutcome:
        """Ask once; an answer counts for the name and arguments of ``request.exec`` alone."""
        outcome: ApprovalOutcome = await self.ctx.root.waterfall(
            "approval/request", request, default="unavailable", scope=request.exec.agent
        )
        return outcome
