"""What stands around a plugin: the person who is asked, a policy that says no, a tool and a service as stand-ins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeAlias

from attrs import frozen
from dsh_hookspecs import ApprovalRequest, Deny

from dsh_runtime.tools.definition import ToolDefinition, ToolOutput

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
        return await _given(self._answers.pop(0) if self._answers else "unavailable", request)


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


class FakeTool:
    """A tool that does as it is told. ``ran`` holds the arguments of each time that its body has run.

    ``answer`` is its value; an exception, which is raised; or a function of the arguments that gives its value (perhaps
    to await). ``more`` goes to the definition: ``idempotent=True``, ``parameters={…}``.
    """

    inject = ("tools",)

    def __init__(self, tool: str, answer: Any = "done", **more: Any) -> None:
        self.name = f"fake-{tool}"
        self.ran: list[Any] = []
        self._tool = tool
        self._answer = answer
        self._more = {"description": "A stand-in.", "parameters": {"type": "object"}, **more}

    def apply(self, ctx: Any) -> None:
        """Register the tool."""
        ctx.tools.register(
            ToolDefinition(self._tool, output=ToolOutput(schema={}), execute=self._execute, **self._more)
        )

    async def _execute(self, args: Any, exec: Any) -> Any:
        self.ran.append(args)
        return await _given(self._answer, args)


async def _given(answer: Any, about: Any) -> Any:
    """An answer as it is, raised, or of a function."""
    if isinstance(answer, BaseException):
        raise answer
    given = answer(about) if callable(answer) else answer
    return await given if isinstance(given, Awaitable) else given


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
