"""Contract 6.1 and 9: entering a call - arguments, the pinned definition, the gate, closed scopes."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from pipeline_kit import (
    ANY_JSON,
    Clockwork,
    Plugin,
    Recorder,
    assert_lossless_and_frozen,
    failure,
    success,
)

from dsh_runtime import open_host

# Arguments


NOT_JSON = {
    "bytes": {"x": b"x"},
    "set": {"x": {1}},
    "nan": {"x": float("nan")},
    "infinity": {"x": [float("-inf")]},
    "int key": {1: "x"},
    "surrogate": {"x": "\udc00"},
    "surrogate key": {"\udc00": 1},
    "object": object(),
    "huge integer": {"x": 10**5000},
}


@pytest.mark.parametrize("arguments", NOT_JSON.values(), ids=NOT_JSON.keys())
async def test_arguments_that_are_no_lossless_json_go_straight_to_the_finish(rec: Recorder, arguments: Any) -> None:
    rec.passers()
    rec.guard("G")
    rec.tool()
    assert_lossless_and_frozen(failure(await rec.call(arguments=arguments), "INVALID_ARGS"))
    assert rec.stages == ["finalize(isError=true,code=INVALID_ARGS)", "result:R"]


async def test_circular_arguments_are_refused(rec: Recorder) -> None:
    circle: dict[str, Any] = {}
    circle["self"] = circle
    rec.tool()
    failure(await rec.call(arguments=circle), "INVALID_ARGS")


async def test_arguments_too_deep_are_refused(rec: Recorder) -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    rec.tool()
    failure(await rec.call(arguments=deep), "INVALID_ARGS")


async def test_arguments_may_be_as_deep_as_the_host_says() -> None:
    async with open_host({"host": {"max_depth": 3}}) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        success(await rec.call(arguments=[[[0]]]))
        failure(await rec.call(arguments=[[[[0]]]]), "INVALID_ARGS")


async def test_the_refusal_names_the_place(rec: Recorder) -> None:
    rec.tool()
    assert "arguments.a[1]" in failure(await rec.call(arguments={"a": [0, object()]}), "INVALID_ARGS").error.message


async def test_arguments_of_an_unknown_tool_are_checked_all_the_same(rec: Recorder) -> None:
    failure(await rec.call("missing", {"x": object()}), "INVALID_ARGS")


@pytest.mark.parametrize("value", [True, 0, -0.0, 1.5, "text", [], [1], {}, {"x": {"y": []}}, 2**70, (1, 2)], ids=repr)
async def test_arguments_of_any_json_reach_a_raw_tool_as_they_are(rec: Recorder, value: Any) -> None:
    rec.tool("echo", lambda args, exec: {"got": args}, schema=ANY_JSON)
    expected = list(value) if isinstance(value, tuple) else value
    assert success(await rec.call(arguments=value)).value == {"got": expected}


async def test_arguments_are_frozen_for_listeners_guards_and_body(rec: Recorder) -> None:
    refused: list[str] = []

    def change(arguments: Any, who: str) -> None:
        with pytest.raises(TypeError):
            arguments["list"].append(2)
        with pytest.raises(TypeError):
            del arguments["list"]
        refused.append(who)

    rec.pre("P", lambda exec, next: change(exec.arguments, "pre") or next())
    rec.guard("G", lambda exec: change(exec.arguments, "guard"))
    rec.around("X", lambda exec, next: change(exec.arguments, "wrapper") or next())
    rec.post("Q", lambda exec, result, next: change(exec.arguments, "post") or next())
    rec.observe("R", lambda exec, result: change(exec.arguments, "observer"))
    rec.tool("echo", lambda args, exec: change(args, "body") or "ok")
    success(await rec.call(arguments={"list": [1]}))
    assert refused == ["pre", "guard", "wrapper", "body", "post", "observer"]


async def test_body_and_listeners_see_the_very_same_arguments(rec: Recorder) -> None:
    seen: list[Any] = []
    rec.pre("P", lambda exec, next: seen.append(exec.arguments) or next())
    rec.tool("echo", lambda args, exec: seen.extend([args, exec.arguments]) or "ok")
    await rec.call(arguments={"x": [1]})
    assert seen[0] is seen[1] is seen[2]


async def test_shared_references_are_fine(rec: Recorder) -> None:
    shared = [1]
    rec.tool("echo", lambda args, exec: args, schema=ANY_JSON)
    assert success(await rec.call(arguments={"a": shared, "b": shared})).value == {"a": [1], "b": [1]}


# The pinned definition


async def test_a_definition_that_is_replaced_meanwhile_serves_its_call_to_the_end(rec: Recorder) -> None:
    def render(version: str) -> Any:
        return lambda args, value: [{"type": "text", "text": f"{version}: {value}"}]

    undo = rec.tool("echo", lambda args, exec: "old value", render=render("old"))

    def swap(exec: Any, next: Any) -> Any:
        undo()
        rec.tool("echo", lambda args, exec: "new value", render=render("new"))
        return next()

    remove = rec.pre("S", swap)
    first = success(await rec.call())
    remove()
    second = success(await rec.call())
    assert [first.content[0]["text"], second.content[0]["text"]] == ["old: old value", "new: new value"]


async def test_a_tool_that_goes_before_dispatch_is_unknown(rec: Recorder) -> None:
    undo = rec.tool()
    rec.around("X", lambda exec, next: undo() or next())
    rec.post("Q")
    failure(await rec.call(), "UNKNOWN_TOOL")
    assert not rec.body_ran
    assert rec.count("post-execute:Q") == 1


async def test_a_tool_that_is_restricted_away_before_dispatch_is_unknown(rec: Recorder) -> None:
    agent = rec.ctx.scope()
    rec.tool()
    rec.pre("P", lambda exec, next: agent.ctx.tools.restrict(deny=["echo"]) and next())
    failure(await rec.call(agent=agent.key), "UNKNOWN_TOOL")
    assert not rec.body_ran


async def test_a_tool_that_comes_during_the_call_does_not_make_it_known(rec: Recorder) -> None:
    rec.pre("P", lambda exec, next: rec.tool() and next())
    result = await rec.call()
    assert result.is_error
    assert not rec.body_ran


async def test_the_owner_of_a_tool_is_not_unloaded_before_its_call_rests(host: Any, nursery: trio.Nursery) -> None:
    rec = Recorder(host.ctx)
    step = Clockwork()

    class Owner:
        name = "owner"
        inject = ("tools",)

        def apply(self, ctx: Any) -> None:
            ctx.effect(lambda: lambda: rec.log("unloaded"))
            ctx.tools.register(rec.definition("echo", body))

    async def body(args: Any, exec: Any) -> str:
        await step.stop()
        rec.log("rested")
        return "ok"

    async def call() -> None:
        results.append(await rec.call())

    async def dispose() -> None:
        await fiber.dispose()

    results: list[Any] = []
    fiber = host.ctx.plugin(Owner())
    await fiber.wait()
    nursery.start_soon(call)
    await step.reached.wait()
    nursery.start_soon(dispose)
    await trio.testing.wait_all_tasks_blocked()
    assert "unloaded" not in rec.stages
    assert (await rec.call()).is_error
    step.go.set()
    await trio.testing.wait_all_tasks_blocked()
    assert success(results[0]).value == "ok"
    assert rec.stages.index("rested") < rec.stages.index("unloaded")


# The gate


def crasher(name: str, crash: trio.Event) -> Plugin:
    """A plugin whose background task crashes when it is told to."""

    async def task() -> None:
        await crash.wait()
        raise RuntimeError("task boom")

    return Plugin(name, lambda ctx: ctx.start_soon(task))


async def test_a_plugin_that_must_be_active_and_is_not_closes_the_gate() -> None:
    crash = trio.Event()
    async with open_host(plugins=[crasher("vital", crash)]) as host:
        rec = Recorder(host.ctx)
        rec.passers()
        rec.guard("G")
        rec.tool()
        success(await rec.call())
        rec.stages.clear()
        crash.set()
        await trio.testing.wait_all_tasks_blocked()
        result = failure(await rec.call(), "GATE_CLOSED")
        assert "vital" in result.error.message
        assert [stage for stage in rec.stages if not stage.startswith("finalize")] == ["result:R"]
        assert rec.results[-1] is result


async def test_a_closed_gate_comes_before_bad_arguments() -> None:
    crash = trio.Event()
    async with open_host(plugins=[crasher("vital", crash)]) as host:
        rec = Recorder(host.ctx)
        rec.tool()
        crash.set()
        await trio.testing.wait_all_tasks_blocked()
        failure(await rec.call(arguments={"x": object()}), "GATE_CLOSED")


async def test_sub_calls_of_a_call_under_way_pass_a_closed_gate() -> None:
    crash = trio.Event()
    async with open_host(plugins=[crasher("vital", crash)]) as host:
        rec = Recorder(host.ctx)

        async def outer(args: Any, exec: Any) -> str:
            crash.set()
            await trio.testing.wait_all_tasks_blocked()
            failure(await rec.call("inner"), "GATE_CLOSED")
            sub = await rec.call("inner", parent=exec.token, root_call_id=exec.root_call_id, signal=exec.signal)
            return success(sub).value

        rec.tool("echo", outer)
        rec.tool("inner")
        assert success(await rec.call()).value == "ran:inner"


# Closed scopes


async def test_a_call_for_a_disposed_scope_is_refused_and_observed(rec: Recorder) -> None:
    agent = rec.ctx.scope()
    rec.passers()
    rec.tool()
    await agent.dispose()
    result = failure(await rec.call(agent=agent.key), "SCOPE_CLOSED")
    assert not rec.body_ran
    assert rec.results == [result]


async def test_a_call_below_a_disposed_scope_is_refused(rec: Recorder) -> None:
    parent = rec.ctx.scope()
    child = rec.ctx.scope(parent=parent.key)
    rec.guard("G", "no", ctx=parent.ctx)
    rec.tool()
    await parent.dispose()
    assert (await rec.call(agent=child.key)).is_error
    assert not rec.body_ran


# Never raising


@pytest.mark.parametrize("name", ["", "missing", "tools/execute", "\ud800"], ids=ascii)
async def test_execute_does_not_raise_for_what_its_caller_sends(rec: Recorder, name: str) -> None:
    rec.observe("R")
    result = await rec.call(name)
    assert result.is_error
    assert_lossless_and_frozen(result)
    assert rec.results == [result]
