"""Conformance of registry and scopes: visibility, order, nesting, presentation, registration."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from pipeline_kit import Recorder, failure, message, success, text
from pipeline_vectors import Vector, vectors

from dsh_runtime import ToolOutput

# Visibility


@vectors("pl-234-unknown")
async def test_a_tool_that_went_before_dispatch_is_unknown_and_still_finalized(rec: Recorder, vector: Vector) -> None:
    undo = rec.tool()
    rec.pre("X", lambda exec, next: undo() or next())
    vector.check(rec, await rec.call())


@vectors("pl-235-restrict")
async def test_a_tool_outside_the_allow_list_is_unknown_but_policy_sees_its_name(rec: Recorder, vector: Vector) -> None:
    agent = rec.ctx.scope()
    rec.pre("P")
    rec.post("Q")
    rec.tool()
    rec.tool("other")
    agent.ctx.tools.restrict(allow=["other"])
    vector.check(rec, await rec.call(agent=agent.key))


@vectors("pl-236-restrict")
async def test_a_deny_list_binds_its_own_agent_alone(rec: Recorder, vector: Vector) -> None:
    rec.tool()
    rec.ctx.scope().ctx.tools.restrict(deny=["echo"])
    vector.check(rec, await rec.call(agent=rec.ctx.scope().key))


@vectors("pl-237-restrict")
async def test_an_agents_own_tool_is_exempt_from_its_allow_list(rec: Recorder, vector: Vector) -> None:
    agent = rec.ctx.scope()
    rec.tool()
    rec.tool("mine", ctx=agent.ctx)
    agent.ctx.tools.restrict(allow=["echo"])
    vector.check(rec, await rec.call("mine", agent=agent.key))


@vectors("pl-238-restrict")
async def test_a_childs_restriction_masks_its_parents_tool(rec: Recorder, vector: Vector) -> None:
    parent = rec.ctx.scope()
    child = rec.ctx.scope(parent=parent.key)
    rec.tool(ctx=parent.ctx)
    child.ctx.tools.restrict(deny=["echo"])
    vector.check(rec, await rec.call(agent=child.key))


@vectors("pl-240-restrict")
async def test_a_restriction_needs_a_scope(rec: Recorder, vector: Vector) -> None:
    assert vector.observed["rejected"]
    rec.tool()
    with pytest.raises(Exception, match="scope"):
        rec.ctx.tools.restrict(deny=["echo"])


@vectors("pl-243-scope")
async def test_a_scoped_tool_shadows_the_hosts_finalizer_included(rec: Recorder, vector: Vector) -> None:
    agent = rec.ctx.scope()
    rec.tool("echo", lambda args, exec: "host", finalize=lambda exec, result: text("by host"))
    rec.tool("echo", lambda args, exec: "own", ctx=agent.ctx, finalize=lambda exec, result: text("by own"))
    own, hosts = success(await rec.call(agent=agent.key)), success(await rec.call())
    vector.check_stages(rec.stages)
    assert (own.value, own.content) == ("own", text("by own"))
    assert (hosts.value, hosts.content) == ("host", text("by host"))


@vectors("pl-244-scope")
async def test_the_nearest_tool_of_a_name_is_the_one(rec: Recorder, vector: Vector) -> None:
    parent, other = rec.ctx.scope(), rec.ctx.scope()
    child = rec.ctx.scope(parent=parent.key)
    rec.tool("echo", lambda args, exec: "host")
    rec.tool("echo", lambda args, exec: "parent", ctx=parent.ctx)
    rec.tool("echo", lambda args, exec: "child", ctx=child.ctx)
    agents = [child.key, parent.key, other.key, None]
    values = [success(await rec.call(agent=agent)).value for agent in agents]
    vector.check_stages(rec.stages)
    assert values == ["child", "parent", "host", "host"]


@vectors("pl-245-scope")
async def test_listeners_of_the_host_and_of_the_agent_hear_its_call(rec: Recorder, vector: Vector) -> None:
    agent, other = rec.ctx.scope(), rec.ctx.scope()
    rec.pre("scoped", ctx=agent.ctx)
    rec.pre("other", ctx=other.ctx)
    rec.pre("global")
    rec.tool()
    vector.check(rec, await rec.call(agent=agent.key))


@vectors("pl-246-scope")
async def test_listeners_of_the_host_alone_hear_a_call_without_an_agent(rec: Recorder, vector: Vector) -> None:
    agent, other = rec.ctx.scope(), rec.ctx.scope()
    rec.pre("scoped", ctx=agent.ctx)
    rec.pre("other", ctx=other.ctx)
    rec.pre("global")
    rec.tool()
    vector.check(rec, await rec.call())


@vectors("pl-247-scope")
async def test_a_parents_listener_hears_its_child_and_not_the_other_way(rec: Recorder, vector: Vector) -> None:
    parent = rec.ctx.scope()
    child = rec.ctx.scope(parent=parent.key)
    rec.pre("child", ctx=child.ctx)
    rec.pre("parent", ctx=parent.ctx)
    rec.pre("global")
    rec.tool()
    await rec.call(agent=child.key)
    rec.log("---parent call---")
    vector.check(rec, await rec.call(agent=parent.key))


async def test_a_call_for_a_disposed_scope_is_refused(rec: Recorder) -> None:
    """In place of pl-249-scope."""
    agent = rec.ctx.scope()
    rec.tool()
    rec.pre("P", ctx=agent.ctx)
    rec.guard("G", "no", ctx=agent.ctx)
    await agent.dispose()
    failure(await rec.call(agent=agent.key), "SCOPE_CLOSED")
    assert not rec.body_ran


# Order


@vectors("pl-251-order")
async def test_a_listener_that_comes_during_a_stage_is_not_called_in_it(rec: Recorder, vector: Vector) -> None:
    rec.pre("A", lambda exec, next: rec.pre("late") and next())
    rec.tool()
    vector.check(rec, await rec.call())


@vectors("pl-252-order")
async def test_a_listener_that_goes_during_a_stage_is_still_called_in_it(rec: Recorder, vector: Vector) -> None:
    undo: list[Any] = []
    rec.pre("A", lambda exec, next: undo[0]() or next())
    undo.append(rec.pre("B"))
    rec.tool()
    vector.check(rec, await rec.call())


# Nesting


@vectors("pl-253-nested")
async def test_a_nested_call_has_its_parents_token_and_root_and_no_meta(rec: Recorder, vector: Vector) -> None:
    def see(exec: Any, next: Any) -> Any:
        parent = "undefined" if exec.parent is None else "symbol"
        rec.log(f"seen({exec.name},root={exec.root_call_id},parent={parent})")
        return next()

    async def outer(args: Any, exec: Any) -> str:
        inner = await nested(rec, exec)
        seen = {"err": inner.is_error, "meta": inner.meta, "v": inner.value}
        return json.dumps(seen, separators=(",", ":"))

    rec.pre("P", see)
    rec.tool("echo", outer, meta=lambda args, value: {"m": 1})
    rec.tool("inner", meta=lambda args, value: {"m": 1}, finalized=False)
    result = await rec.call(call_id="c1")
    vector.check(rec, result)
    assert result.meta == {"m": 1}


@vectors("pl-254-nested")
async def test_what_a_nested_call_defers_and_concludes_stays_with_it(rec: Recorder, vector: Vector) -> None:
    def inner(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        exec.conclude_turn()
        return "inner"

    async def outer(args: Any, exec: Any) -> str:
        result = await nested(rec, exec)
        return f"concludes={str(result.concludes_turn).lower()},ctx={len(result.additional_contexts)}"

    rec.tool("echo", outer)
    rec.tool("inner", inner)
    vector.check(rec, await rec.call())


async def nested(rec: Recorder, exec: Any) -> Any:
    """Call the tool ``inner`` on behalf of a body."""
    return await rec.call("inner", parent=exec.token, root_call_id=exec.root_call_id, signal=exec.signal)


# Presentation


@vectors("pl-256-code")
async def test_in_mode_code_a_direct_call_of_a_native_tool_is_unknown_before_policy(
    rec: Recorder, vector: Vector
) -> None:
    agent = code_agent(rec)
    rec.passers()
    rec.tool()
    result = await rec.call(agent=agent)
    vector.check(rec, result)
    assert "run_code" in failure(result, "UNKNOWN_TOOL").error.message


@vectors("pl-258-code")
async def test_in_mode_code_an_unknown_tool_runs_the_pipeline(rec: Recorder, vector: Vector) -> None:
    agent = code_agent(rec)
    rec.passers()
    result = await rec.call("missing", agent=agent)
    vector.check(rec, result)
    assert "run_code" not in failure(result, "UNKNOWN_TOOL").error.message


def code_agent(rec: Recorder) -> Any:
    """An agent whose model sees programs alone."""
    agent = rec.ctx.scope()
    agent.ctx.tools.present_as("code")
    return agent.key


# Registration


def without_output(rec: Recorder) -> Any:
    return attrs.evolve(rec.definition(), output=None)


def with_output(rec: Recorder, **changes: Any) -> Any:
    definition = rec.definition()
    return attrs.evolve(definition, output=attrs.evolve(definition.output, **changes))


REFUSED = {
    "pl-261-register": without_output,
    "pl-263-register": lambda rec: with_output(rec, presentation_meta="no function"),
    "pl-265-register": lambda rec: rec.definition("run_code"),
    "pl-270-register": lambda rec: with_output(rec, schema=None),
}


@vectors("pl-261-register", "pl-263-register", "pl-265-register", "pl-270-register")
async def test_a_definition_that_does_not_hold_is_refused(rec: Recorder, vector: Vector) -> None:
    assert vector.observed["rejected"]
    with pytest.raises(Exception, match=r"echo|run_code|output|schema|presentation_meta"):
        rec.ctx.tools.register(REFUSED[vector.id](rec))
    assert rec.ctx.tools.get("echo") is None
    assert rec.ctx.tools.get("run_code") is None


async def test_without_render_a_value_is_one_text_block(rec: Recorder) -> None:
    """In place of pl-262-register."""
    plain = with_output(rec, render=None)
    assert isinstance(plain.output, ToolOutput)
    rec.ctx.tools.register(plain)
    assert (await rec.call()).content == text("ran:echo")


@vectors("pl-269-register")
async def test_a_tool_may_have_an_empty_name(rec: Recorder, vector: Vector) -> None:
    assert "rejected" not in vector.observed
    rec.tool("")
    assert success(await rec.call("")).value == "ran:"


@vectors("pl-271-register")
async def test_a_second_tool_of_one_name_is_refused(rec: Recorder, vector: Vector) -> None:
    assert vector.observed["rejected"]
    rec.tool()
    with pytest.raises(Exception, match="echo"):
        rec.tool()


@vectors("pl-273-register")
async def test_a_name_is_free_again_once_its_tool_is_undone(rec: Recorder, vector: Vector) -> None:
    undo = rec.tool("echo", lambda args, exec: "first")
    undo()
    rec.tool("echo", lambda args, exec: "second")
    vector.check(rec, await rec.call())


@vectors("pl-274-register")
async def test_an_undo_called_twice_leaves_a_later_tool_of_the_name(rec: Recorder, vector: Vector) -> None:
    undo = rec.tool("echo", lambda args, exec: "first")
    undo()
    rec.tool("echo", lambda args, exec: "second")
    undo()
    vector.check(rec, await rec.call())


@vectors("pl-275-mode")
async def test_only_a_classifier_that_says_exactly_true_is_parallel(rec: Recorder, vector: Vector) -> None:
    def boom(args: Any) -> bool:
        raise RuntimeError("classifier boom")

    rec.tool("undeclared")
    rec.tool("true", is_concurrency_safe=lambda args: True)
    rec.tool("truthy", is_concurrency_safe=lambda args: 1)
    rec.tool("throwing", is_concurrency_safe=boom)
    names = ["undeclared", "true", "truthy", "throwing", "unknown"]
    modes = [rec.ctx.tools.execution_mode(rec.input(name)) for name in names]
    assert modes == ["exclusive", "parallel", "exclusive", "exclusive", "exclusive"]
    vector.check_stages(rec.stages)
