"""What nobody but an interrupt or a cancellation may end: whatever plugins raise, the call is answered."""

# ruff: noqa: A006  # listeners are lambdas of exec and next

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trio
from dsh_hookspecs import Deny

from dsh_runtime import AbortController, ToolExecutionInput, open_host, tool


class Odd(BaseException):
    """An error that is no ``Exception``."""


class Unreadable:
    """Something whose representation fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def call(name: str = "echo", **more: Any) -> ToolExecutionInput:
    """A call of one tool."""
    signal = AbortController().signal
    return ToolExecutionInput(**{"call_id": "c", "name": name, "arguments": {}, "signal": signal, **more})


@tool
async def echo() -> str:
    """Say something."""
    return "hi"


def raising(error: BaseException) -> Any:
    """A function of whatever arguments that raises."""

    def fail(exec: Any) -> Any:
        raise error

    return fail


ODD = [Odd("odd"), asyncio.CancelledError("odd"), BaseExceptionGroup("both", [SystemExit(1), Odd("odd")])]


@pytest.mark.parametrize("error", ODD, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("stage", ["tools/pre-execute", "tools/execute", "tools/post-execute", "guard", "body"])
async def test_an_error_that_is_no_exception_is_a_failure_like_any_other(stage: str, error: BaseException) -> None:
    """One tool or listener cannot end the host."""
    observed: list[Any] = []
    async with open_host() as host:

        @tool
        async def fail() -> str:
            """Fail."""
            raise error

        host.ctx.tools.register(echo)
        host.ctx.tools.register(fail)
        host.ctx.on("tools/result", lambda result: observed.append(result))
        if stage == "guard":
            host.ctx.tools.guard(raising(error))
        elif stage != "body":
            host.ctx.on(stage, raising(error))
        result = await host.ctx.tools.execute(call("fail" if stage == "body" else "echo"))
    assert result.is_error
    assert observed == [result]


async def test_an_observer_that_raises_such_an_error_harms_nobody() -> None:
    """The result is given all the same."""
    async with open_host() as host:
        host.ctx.tools.register(echo)
        host.ctx.on("tools/result", raising(Odd("odd")))
        result = await host.ctx.tools.execute(call())
    assert result.value == "hi"


@pytest.mark.parametrize("stage", ["tools/pre-execute", "tools/execute", "tools/post-execute"])
async def test_an_answer_that_cannot_be_shown_fails_closed(stage: str) -> None:
    """A message about rubbish does not need the rubbish to cooperate."""
    async with open_host() as host:
        host.ctx.tools.register(echo)
        host.ctx.on(stage, lambda exec: Unreadable())
        result = await host.ctx.tools.execute(call())
    assert result.is_error
    assert "Unreadable" in result.error.message


class Hashless:
    """A key that fails when it is looked up."""

    def __hash__(self) -> int:
        raise RuntimeError("no hash")


@pytest.mark.parametrize(
    "odd", [{"agent": Hashless()}, {"call_id": Unreadable()}, {"parent": []}, {"name": Unreadable()}]
)
async def test_an_input_that_raises_when_it_is_looked_at_is_answered(odd: dict[str, Any]) -> None:
    """With one observed result."""
    observed: list[Any] = []
    async with open_host() as host:
        host.ctx.tools.register(echo)
        host.ctx.on("tools/result", lambda result: observed.append(result))
        result = await host.ctx.tools.execute(call(**odd))
    assert result.is_error
    assert observed == [result]


@pytest.mark.parametrize("arguments", [("many",), (1, 2, b"bytes"), (1, True)])
async def test_progress_takes_numbers_and_a_text(arguments: tuple[Any, ...]) -> None:
    """Anything else is the body's mistake, and reaches no observer."""
    heard: list[Any] = []

    @tool
    async def work(exec: Any) -> str:
        """Work."""
        exec.progress(*arguments)
        return "done"

    async with open_host() as host:
        host.ctx.tools.register(work)
        host.ctx.on("tools/progress", lambda progress: heard.append(progress))
        result = await host.ctx.tools.execute(call("work"))
    assert result.error.info.name == "TypeError"
    assert heard == []


@pytest.mark.parametrize("how", ["crash", "dispose", "update"])
async def test_a_sub_call_is_never_without_a_policy_that_the_call_around_it_had(how: str) -> None:
    """A policy that unloads while a call is under way is still asked about that call's sub-calls."""
    ran: list[str] = []
    crash = trio.Event()
    go_on = trio.Event()

    class Policy:
        name = "policy"

        def apply(self, ctx: Any) -> None:
            ctx.on("tools/pre-execute", lambda exec, next: Deny("forbidden") if exec.name == "danger" else next())
            ctx.start_soon(self.crash)

        async def crash(self) -> None:
            await crash.wait()
            raise RuntimeError("the policy's task")

    async with open_host(plugins=[Policy()]) as host:

        @tool
        async def danger() -> str:
            """Do harm."""
            ran.append("danger")
            return "done"

        @tool
        async def outer(exec: Any) -> list[str]:
            """Call another tool, before and after."""
            before = await host.ctx.tools.execute(call("danger", parent=exec.token))
            started.set()
            await go_on.wait()
            after = await host.ctx.tools.execute(call("danger", parent=exec.token))
            return [result.error.info.code for result in (before, after)]

        started = trio.Event()
        host.ctx.tools.register(danger)
        host.ctx.tools.register(outer)
        results: list[Any] = []

        async def run() -> None:
            results.append(await host.ctx.tools.execute(call("outer")))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await started.wait()
            fiber = host.plugins[0].fiber
            assert fiber is not None
            if how == "crash":
                crash.set()
            elif how == "dispose":
                fiber.dispose()
            else:
                fiber.update(None)
            while fiber.state == "active":
                await trio.lowlevel.checkpoint()
            go_on.set()
    assert results[0].value == ["DENIED", "DENIED"]
    assert ran == []
