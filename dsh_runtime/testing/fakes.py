"""What stands around a host: the person who is asked, a policy that says no, a service that is a stand-in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

from attrs import frozen
from dsh_hookspecs import ApprovalRequest, Deny

#: An outcome, what raises (an error as it is), or a function of the request that gives an outcome (perhaps to await).
Answer: TypeAlias = "str | BaseException | Callable[[ApprovalRequest], Any]"
OUTCOMES: Final = ("allowed-once", "rejected", "expired", "cancelled", "unavailable")


class ScriptedApproval:
    """A person's answers, in order; when they are used up, nobody is there. ``asked`` tells what was asked.

    An answer is an outcome; an exception, which is raised; or a function of the request that gives an outcome.
    """

    name = "scripted-approval"

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self._answers = list(answers)
        self.asked: list[ApprovalRequest] = []
        for answer in self._answers:
            if isinstance(answer, str) and answer not in OUTCOMES:
                raise ValueError(f"{answer!r} is no outcome of an approval; give one of {', '.join(OUTCOMES)}")

    @property
    def left(self) -> int:
        """How many answers nobody has asked for."""
        return len(self._answers)

    def apply(self, ctx: Any) -> None:
        """Listen as a channel does."""
        ctx.on("approval/request", self._answer)

    async def _answer(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        answer = self._answers.pop(0) if self._answers else "unavailable"
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, str):
            return answer
        given = answer(request)
        return await given if isinstance(given, Awaitable) else given


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


@frozen(eq=False)
class _Provider:
    name: str
    provides: tuple[str, ...]
    value: Any

    def apply(self, ctx: Any) -> None:
        ctx.provide(self.provides[0], self.value)


def provide(service: str, value: Any) -> Any:
    """A plugin that provides a stand-in for a service."""
    return _Provider(f"fake-{service}", (service,), value)
