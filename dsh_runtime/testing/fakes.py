"""What stands around a host: the person who is asked, a policy that says no, a service that is a stand-in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dsh_hookspecs import ApprovalRequest, Deny


class ScriptedApproval:
    """Answers what policy asks, in order; when the answers are used up, nobody is there. ``asked`` tells what for."""

    name = "scripted-approval"

    def __init__(self, answers: Iterable[str] = ()) -> None:
        self._answers = list(answers)
        self.asked: list[ApprovalRequest] = []

    def apply(self, ctx: Any) -> None:
        """Listen as a channel does."""
        ctx.on("approval/request", self._answer)

    def _answer(self, request: ApprovalRequest) -> str:
        self.asked.append(request)
        return self._answers.pop(0) if self._answers else "unavailable"


class Denial:
    """A policy that denies every call, or those of some tools."""

    name = "denial"

    def __init__(self, reason: str = "denied by the test", tools: Iterable[str] | None = None) -> None:
        self._reason = reason
        self._tools = frozenset(tools) if tools is not None else None

    def apply(self, ctx: Any) -> None:
        """Listen before every call."""
        ctx.on("tools/pre-execute", self._judge)

    async def _judge(self, exec: Any, next: Any) -> Any:
        return Deny(self._reason) if self._tools is None or exec.name in self._tools else await next()


class _Provider:
    def __init__(self, service: str, value: Any) -> None:
        self.name = f"fake-{service}"
        self.provides = [service]
        self._service = service
        self._value = value

    def apply(self, ctx: Any) -> None:
        ctx.provide(self._service, self._value)


def provide(service: str, value: Any) -> Any:
    """A plugin that provides a stand-in for a service."""
    return _Provider(service, value)
