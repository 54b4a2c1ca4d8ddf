"""A host whose approval service can be asked directly, with plugins as channels and a record of what was told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from attrs import define, field
from dsh_hookspecs import AbortController, ApprovalRequest, Context, ExecutionToken

from dsh_runtime import Host, open_host
from dsh_runtime.tools.execution import make_execution


class Plugin:
    """A plugin made of a name and what it does when it applies."""

    def __init__(self, name: str, apply: Callable[[Context], Any], inject: tuple[str, ...] = ("approval",)) -> None:
        self.name = name
        self.inject = inject
        self.apply = lambda ctx: apply(ctx)


@define(eq=False)
class Desk:
    """The approval service with what was told of it."""

    host: Host
    asked: list[ApprovalRequest] = field(factory=list)
    decided: list[tuple[str, str | None]] = field(factory=list)
    controller: AbortController = field(factory=AbortController)

    def listen(self) -> None:
        self.host.ctx.on("approval/asked", lambda request: self.asked.append(request))
        self.host.ctx.on("approval/decided", lambda outcome, channel: self.decided.append((outcome, channel)))

    @property
    def approval(self) -> Any:
        return self.host.ctx.approval

    async def plugin(self, name: str, apply: Callable[[Any], Any]) -> Any:
        """Mount a plugin; give back its fiber, active."""
        fiber = self.host.ctx.plugin(Plugin(name, apply))
        await fiber.wait()
        return fiber

    async def channel(self, name: str, answer: Callable[..., Any]) -> Any:
        """Mount a plugin that is a channel."""
        return await self.plugin(name, lambda ctx: ctx.on("approval/request", answer) and None)

    def request(self, arguments: Any = None, *, agent: Any = None, **more: Any) -> ApprovalRequest:
        """A request about a call."""
        signal = self.controller.signal
        call = make_execution("c1", "rm", arguments or {}, signal, agent, None, None, ExecutionToken())
        return ApprovalRequest(call, "is it safe?", **more)

    async def ask(self, arguments: Any = None, **more: Any) -> str:
        """Ask the service."""
        outcome: str = await self.approval.request(self.request(arguments, **more))
        return outcome


@asynccontextmanager
async def _open_desk(**settings: Any) -> AsyncIterator[Desk]:
    async with open_host({"host": settings}) as host:
        desk = Desk(host)
        desk.listen()
        yield desk


@pytest.fixture
def open_desk() -> Callable[..., AbstractAsyncContextManager[Desk]]:
    """``async with open_desk(approval_timeout=5) as desk``."""
    return _open_desk


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """The approval service of a host without a config."""
    async with _open_desk() as desk:
        yield desk
