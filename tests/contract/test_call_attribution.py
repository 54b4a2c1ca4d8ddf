"""Contract 6: a failure names the plugin whose code decided, wherever one did."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pipeline_kit import Plugin, Recorder, code, plugin, raising

from dsh_runtime import (
    AbortController,
    Ask,
    Block,
    Deny,
    HarnessError,
    ToolExecutionSuccess,
)

Apply = Callable[[Any], Any]


def on(stage: str, then: Callable[..., Any]) -> Apply:
    return lambda ctx: ctx.on(f"tools/{stage}", then)


def fail(next: Any) -> Any:
    raise RuntimeError("boom")


def fail_coded(next: Any) -> Any:
    raise HarnessError("boom", code="MINE")


async def fail_later(next: Any) -> Any:
    await next()
    raise RuntimeError("boom")


NOTHING: Any = None
DECIDES: dict[str, tuple[Apply, str | None]] = {
    "denies": (on("pre-execute", lambda exec: Deny("no")), "DENIED"),
    "pre raises": (on("pre-execute", fail), "LISTENER_FAILED"),
    "pre raises with a code": (on("pre-execute", fail_coded), "MINE"),
    "pre raises after next": (on("pre-execute", fail_later), "LISTENER_FAILED"),
    "pre returns nothing": (on("pre-execute", lambda exec: None), "LISTENER_FAILED"),
    "pre returns rubbish": (on("pre-execute", lambda exec: "allow"), "LISTENER_FAILED"),
    "pre denies without a reason": (on("pre-execute", lambda exec: Deny(NOTHING)), "LISTENER_FAILED"),
    "guards": (lambda ctx: ctx.tools.guard(lambda exec: "no"), "GUARDED"),
    "guard raises": (lambda ctx: ctx.tools.guard(raising(RuntimeError("boom"))), "LISTENER_FAILED"),
    "guard returns rubbish": (lambda ctx: ctx.tools.guard(lambda exec: True), "LISTENER_FAILED"),
    "wrapper raises": (on("execute", fail), ...),
    "wrapper raises with a code": (on("execute", fail_coded), "MINE"),
    "wrapper raises after next": (on("execute", fail_later), ...),
    "wrapper returns nothing": (on("execute", lambda exec: None), ...),
    "wrapper returns a bad value": (
        on("execute", lambda exec: ToolExecutionSuccess(value=5, content=[])),
        "INVALID_TOOL_OUTPUT",
    ),
    "blocks": (on("post-execute", lambda exec: Block("no")), "BLOCKED"),
    "post raises": (on("post-execute", fail), "LISTENER_FAILED"),
    "post raises with a code": (on("post-execute", fail_coded), "MINE"),
    "post returns nothing": (on("post-execute", lambda exec: None), "LISTENER_FAILED"),
}


@pytest.mark.parametrize(("apply", "expected"), DECIDES.values(), ids=DECIDES)
async def test_the_plugin_that_decided_is_named_and_not_those_around_it(host: Any, apply: Apply, expected: Any) -> None:
    rec = Recorder(host.ctx)

    async def listens(next: Any) -> Any:
        return await next()

    def bystander(ctx: Any) -> None:
        for stage in ("pre-execute", "execute", "post-execute"):
            ctx.on(f"tools/{stage}", listens)
        ctx.tools.guard(lambda exec: None)

    for mounted in (Plugin("before", bystander), Plugin("decider", apply), Plugin("after", bystander)):
        await host.ctx.plugin(mounted).wait()
    rec.tool()
    result = await rec.call()
    assert plugin(result) == "decider"
    if expected is not ...:
        assert code(result) == expected


@pytest.mark.parametrize("body", [raising(RuntimeError("boom")), raising(HarnessError("boom", code="X"))])
async def test_the_tools_plugin_is_named_for_what_its_body_raises(host: Any, body: Any) -> None:
    await assert_the_owner_is_named(host, body=body)


@pytest.mark.parametrize("render", [raising(RuntimeError("boom")), lambda args, value: "no blocks"])
async def test_the_tools_plugin_is_named_for_its_rendering(host: Any, render: Any) -> None:
    await assert_the_owner_is_named(host, render=render)


async def test_the_tools_plugin_is_named_for_a_value_that_does_not_hold(host: Any) -> None:
    await assert_the_owner_is_named(host, body=lambda args, exec: 5)


async def test_the_tools_plugin_is_named_for_its_finalizer(host: Any) -> None:
    await assert_the_owner_is_named(host, finalize=raising(RuntimeError("boom")))


async def assert_the_owner_is_named(host: Any, body: Any = None, **more: Any) -> None:
    rec = Recorder(host.ctx)
    definition = rec.definition("echo", body, **more)
    await host.ctx.plugin(Plugin("owner", lambda ctx: ctx.tools.register(definition))).wait()
    assert plugin(await rec.call()) == "owner"


async def test_nobody_is_named_where_no_plugin_decided(rec: Recorder) -> None:
    caller = AbortController()
    caller.abort()
    rec.tool()
    assert plugin(await rec.call(signal=caller.signal)) is None
    assert plugin(await rec.call("missing")) is None
    assert plugin(await rec.call(arguments={"x": object()})) is None


async def test_an_approval_channel_that_raises_is_named(host: Any) -> None:
    rec = Recorder(host.ctx)

    def fail(request: Any) -> Any:
        raise RuntimeError("boom")

    await host.ctx.plugin(Plugin("clerk", lambda ctx: ctx.on("approval/request", fail))).wait()
    rec.pre("A", lambda exec, next: Ask())
    rec.tool()
    result = await rec.call(agent=host.ctx.scope().key)
    assert (code(result), plugin(result)) == ("LISTENER_FAILED", "clerk")
