"""Contract 5: registering tools, who sees which, restrictions, schemas, presentation."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest
from pipeline_kit import Plugin, Recorder, failure, plain, success

from dsh_runtime import JsonSchemaError, ToolOutput

# Registration


async def test_register_gives_its_exact_undo(rec: Recorder) -> None:
    undo = rec.tool()
    rec.tool("other")
    undo()
    assert rec.ctx.tools.get("echo") is None
    assert rec.ctx.tools.get("other") is not None
    failure(await rec.call(), "UNKNOWN_TOOL")


async def test_get_gives_the_definition_that_was_registered(rec: Recorder) -> None:
    definition = rec.definition()
    rec.ctx.tools.register(definition)
    assert rec.ctx.tools.get("echo") == definition
    assert rec.ctx.tools.get("missing") is None


async def test_a_tool_goes_with_its_plugin(host: Any) -> None:
    rec = Recorder(host.ctx)
    fiber = host.ctx.plugin(Plugin("owner", lambda ctx: ctx.tools.register(rec.definition())))
    await fiber.wait()
    assert host.ctx.tools.get("echo") is not None
    await fiber.dispose()
    assert host.ctx.tools.get("echo") is None


async def test_a_second_tool_of_one_name_is_refused_and_both_owners_are_named(host: Any) -> None:
    rec = Recorder(host.ctx)
    first = host.ctx.plugin(Plugin("first", lambda ctx: ctx.tools.register(rec.definition())))
    await first.wait()
    second = host.ctx.plugin(Plugin("second", lambda ctx: ctx.tools.register(rec.definition())))
    with pytest.raises(Exception, match="echo") as caught:
        await second.wait()
    assert "first" in str(caught.value)
    assert "second" in str(caught.value)
    assert host.ctx.tools.get("echo") is not None


async def test_a_second_tool_of_one_name_in_one_scope_is_refused(rec: Recorder) -> None:
    scope = rec.ctx.scope()
    rec.tool(ctx=scope.ctx)
    with pytest.raises(Exception, match="echo"):
        rec.tool(ctx=scope.ctx)


async def test_a_reserved_name_is_refused_in_scopes_too(rec: Recorder) -> None:
    for ctx in (rec.ctx, rec.ctx.scope().ctx):
        with pytest.raises(Exception, match="run_code"):
            rec.tool("run_code", ctx=ctx)


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("description", None),
        ("description", 3),
        ("description", "lone \ud800"),
        ("parameters", None),
        ("parameters", "object"),
        ("parameters", [{"type": "object"}]),
        ("parameters", {"default": float("nan")}),
        ("parameters", {"properties": {1: {}}}),
        ("parameters", {"enum": {1, 2}}),
        ("idempotent", "no"),
        ("idempotent", 1),
    ],
    ids=repr,
)
async def test_what_is_shown_of_a_tool_has_to_be_of_its_type(rec: Recorder, part: str, wrong: Any) -> None:
    """It would only come out when somebody lists the tools; the error names tool, plugin and part."""
    with pytest.raises(Exception, match=f"tool 'echo' of plugin .* (has|gives) .*{part}"):
        rec.ctx.tools.register(attrs.evolve(rec.definition(), **{part: wrong}))
    assert rec.ctx.tools.get("echo") is None


async def test_parameters_may_be_as_deep_as_a_remote_server_likes(rec: Recorder) -> None:
    """They are relayed as they are."""
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"items": schema}
    rec.ctx.tools.register(attrs.evolve(rec.definition(), parameters=schema))
    assert rec.ctx.tools.get("echo") is not None


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), "5", True], ids=repr)
async def test_a_timeout_has_to_be_positive_and_finite(rec: Recorder, timeout: Any) -> None:
    with pytest.raises(Exception, match="timeout"):
        rec.tool(timeout=timeout)
    assert rec.ctx.tools.get("echo") is None


async def test_a_timeout_may_be_a_fraction_of_a_second(rec: Recorder) -> None:
    rec.tool(timeout=0.5)
    assert rec.ctx.tools.get("echo").timeout == 0.5


BAD_SCHEMAS: dict[str, Any] = {
    "pattern": {"type": "string", "pattern": "x"},
    "ref": {"$ref": "#/x"},
    "two types": {"type": ["string", "null"]},
    "one branch": {"oneOf": [{"type": "string"}]},
    "undeclared required": {"type": "object", "required": ["x"]},
}


@pytest.mark.parametrize("schema", BAD_SCHEMAS.values(), ids=BAD_SCHEMAS.keys())
async def test_an_output_schema_outside_the_subset_is_refused(rec: Recorder, schema: Any) -> None:
    with pytest.raises(JsonSchemaError) as caught:
        rec.tool(schema=schema)
    assert caught.value.code == "UNSUPPORTED_SCHEMA"
    assert caught.value.violations
    assert rec.ctx.tools.get("echo") is None


async def test_parameters_of_a_raw_tool_are_relayed_in_any_dialect(rec: Recorder) -> None:
    dialect = {"$schema": "http://json-schema.org/draft-07/schema#", "allOf": [{"minProperties": 1}], "x-odd": [None]}
    rec.tool(parameters=dialect)
    (schema,) = rec.ctx.tools.schemas()
    assert schema["parameters"] == dialect


@pytest.mark.parametrize("output", [None, {"type": "string"}, ToolOutput(schema=None)], ids=["None", "dict", "schema"])
async def test_a_tool_without_an_output_declaration_is_refused(rec: Recorder, output: Any) -> None:
    with pytest.raises(Exception, match=r"output|schema"):
        rec.ctx.tools.register(attrs.evolve(rec.definition(), output=output))
    assert rec.ctx.tools.get("echo") is None


# Layers


async def test_a_scoped_tool_is_seen_in_its_scope_and_below_alone(rec: Recorder) -> None:
    parent = rec.ctx.scope()
    child, other = rec.ctx.scope(parent=parent.key), rec.ctx.scope()
    rec.tool(ctx=parent.ctx)
    seen = {name: rec.ctx.tools.get("echo", scope) is not None for name, scope in scopes(parent, child, other).items()}
    assert seen == {"host": False, "parent": True, "child": True, "other": False}
    success(await rec.call(agent=child.key))
    failure(await rec.call(agent=other.key), "UNKNOWN_TOOL")


def scopes(parent: Any, child: Any, other: Any) -> dict[str, Any]:
    return {"host": None, "parent": parent.key, "child": child.key, "other": other.key}


async def test_undoing_a_shadow_brings_back_the_tool_above(rec: Recorder) -> None:
    scope = rec.ctx.scope()
    rec.tool("echo", lambda args, exec: "host")
    undo = rec.tool("echo", lambda args, exec: "own", ctx=scope.ctx)
    assert success(await rec.call(agent=scope.key)).value == "own"
    undo()
    assert success(await rec.call(agent=scope.key)).value == "host"


async def test_the_tools_of_a_disposed_scope_are_gone(rec: Recorder) -> None:
    parent = rec.ctx.scope()
    child = rec.ctx.scope(parent=parent.key)
    rec.tool(ctx=child.ctx)
    await child.dispose()
    assert rec.ctx.tools.get("echo", parent.key) is None
    assert rec.ctx.tools.schemas(parent.key) == []


# Restrictions


def visible(rec: Recorder, scope: Any) -> set[str]:
    """The names that a scope sees; display, look-up and the schemas have to agree."""
    names = {schema["name"] for schema in rec.ctx.tools.schemas(scope.key)}
    assert names == {name for name in ("a", "b", "c", "late", "own") if rec.ctx.tools.get(name, scope.key) is not None}
    return names


@pytest.fixture
def abc(rec: Recorder) -> Recorder:
    for name in "abc":
        rec.tool(name)
    return rec


async def test_an_allow_list_keeps_only_what_it_names(abc: Recorder) -> None:
    scope = abc.ctx.scope()
    scope.ctx.tools.restrict(allow=["a"])
    assert visible(abc, scope) == {"a"}
    failure(await abc.call("b", agent=scope.key), "UNKNOWN_TOOL")


async def test_a_deny_list_removes_only_what_it_names(abc: Recorder) -> None:
    scope = abc.ctx.scope()
    scope.ctx.tools.restrict(deny=["a"])
    assert visible(abc, scope) == {"b", "c"}


async def test_allow_and_deny_together_intersect(abc: Recorder) -> None:
    scope = abc.ctx.scope()
    scope.ctx.tools.restrict(allow=["a", "b"], deny=["b"])
    assert visible(abc, scope) == {"a"}


async def test_several_restrictions_intersect_and_are_lifted_one_by_one(abc: Recorder) -> None:
    scope = abc.ctx.scope()
    lift_first = scope.ctx.tools.restrict(allow=["a", "b"])
    lift_second = scope.ctx.tools.restrict(allow=["b", "c"])
    assert visible(abc, scope) == {"b"}
    lift_first()
    lift_first()
    assert visible(abc, scope) == {"b", "c"}
    lift_second()
    assert visible(abc, scope) == {"a", "b", "c"}


async def test_a_deny_list_admits_tools_that_come_later_and_an_allow_list_does_not(abc: Recorder) -> None:
    denying, allowing = abc.ctx.scope(), abc.ctx.scope()
    denying.ctx.tools.restrict(deny=["a"])
    allowing.ctx.tools.restrict(allow=["a"])
    abc.tool("late")
    assert (visible(abc, denying), visible(abc, allowing)) == ({"b", "c", "late"}, {"a"})


async def test_a_restriction_outlives_the_tool_that_it_names(abc: Recorder) -> None:
    scope = abc.ctx.scope()
    undo = abc.tool("late")
    scope.ctx.tools.restrict(deny=["late"])
    undo()
    abc.tool("late")
    assert "late" not in visible(abc, scope)


async def test_a_restriction_filters_what_is_inherited_from_every_ancestor(abc: Recorder) -> None:
    parent = abc.ctx.scope()
    child = abc.ctx.scope(parent=parent.key)
    abc.tool("own", ctx=parent.ctx)
    child.ctx.tools.restrict(deny=["own", "a"])
    assert visible(abc, child) == {"b", "c"}
    assert visible(abc, parent) == {"a", "b", "c", "own"}


async def test_a_parents_restriction_binds_its_children(abc: Recorder) -> None:
    parent = abc.ctx.scope()
    child = abc.ctx.scope(parent=parent.key)
    parent.ctx.tools.restrict(deny=["a"])
    assert visible(abc, child) == {"b", "c"}


async def test_a_restriction_never_hides_a_scopes_own_tools(abc: Recorder) -> None:
    scope = abc.ctx.scope()
    abc.tool("own", ctx=scope.ctx)
    scope.ctx.tools.restrict(allow=["a"])
    assert visible(abc, scope) == {"a", "own"}


async def test_an_own_tool_shows_through_a_denied_name(abc: Recorder) -> None:
    scope = abc.ctx.scope()
    scope.ctx.tools.restrict(deny=["a"])
    abc.tool("a", lambda args, exec: "own", ctx=scope.ctx)
    assert success(await abc.call("a", agent=scope.key)).value == "own"


EMPTY: dict[str, dict[str, Any]] = {"nothing": {}, "allow": {"allow": []}, "deny": {"deny": []}}


@pytest.mark.parametrize("filters", EMPTY.values(), ids=EMPTY.keys())
async def test_an_empty_filter_is_an_error_that_lists_the_known_names(abc: Recorder, filters: dict[str, Any]) -> None:
    scope = abc.ctx.scope()
    with pytest.raises(Exception, match=r"\ba\b.*\bb\b.*\bc\b"):
        scope.ctx.tools.restrict(**filters)
    assert visible(abc, scope) == {"a", "b", "c"}


@pytest.mark.parametrize("kind", ["allow", "deny"])
async def test_an_unknown_name_is_an_error_that_lists_the_known_ones(abc: Recorder, kind: str) -> None:
    scope = abc.ctx.scope()
    with pytest.raises(Exception, match="missing") as caught:
        scope.ctx.tools.restrict(**{kind: ["a", "missing"]})
    assert re.search(r"\ba\b.*\bb\b.*\bc\b", str(caught.value))
    assert visible(abc, scope) == {"a", "b", "c"}


@pytest.mark.parametrize("kind", ["allow", "deny"])
async def test_an_own_name_is_an_error(abc: Recorder, kind: str) -> None:
    scope = abc.ctx.scope()
    abc.tool("own", ctx=scope.ctx)
    with pytest.raises(Exception, match="own"):
        scope.ctx.tools.restrict(**{kind: ["own"]})


@pytest.mark.parametrize("kind", ["allow", "deny"])
async def test_the_reserved_name_is_an_error(abc: Recorder, kind: str) -> None:
    with pytest.raises(Exception, match="run_code"):
        abc.ctx.scope().ctx.tools.restrict(**{kind: ["run_code"]})


async def test_a_restriction_through_an_unscoped_context_is_an_error(abc: Recorder) -> None:
    with pytest.raises(Exception, match="scope"):
        abc.ctx.tools.restrict(deny=["a"])
    assert abc.ctx.tools.get("a") is not None


# Schemas


async def test_schemas_carry_name_description_and_parameters_alone(rec: Recorder) -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "string"}}}
    rec.tool("echo", parameters=parameters, timeout=5, idempotent=True, is_concurrency_safe=lambda args: True)
    assert rec.ctx.tools.schemas() == [
        {"name": "echo", "description": "The tool echo.", "parameters": parameters},
    ]


async def test_schemas_are_detached(rec: Recorder) -> None:
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    rec.tool(parameters=parameters)
    (schema,) = rec.ctx.tools.schemas()
    schema["parameters"]["properties"]["x"] = {}
    schema["name"] = "changed"
    assert rec.ctx.tools.schemas() == [
        {"name": "echo", "description": "The tool echo.", "parameters": {"type": "object", "properties": {}}},
    ]
    assert parameters == {"type": "object", "properties": {}}


async def test_display_look_up_and_dispatch_agree_on_the_nearest_tool_of_a_name(rec: Recorder) -> None:
    parent = rec.ctx.scope()
    child = rec.ctx.scope(parent=parent.key)
    layers = {"host": (rec.ctx, None), "parent": (parent.ctx, parent.key), "child": (child.ctx, child.key)}
    for layer, (ctx, _) in layers.items():
        rec.tool("echo", lambda args, exec, layer=layer: layer, ctx=ctx, parameters={"title": layer})
    for layer, (_, key) in layers.items():
        (schema,) = rec.ctx.tools.schemas(key)
        assert schema["parameters"] == rec.ctx.tools.get("echo", key).parameters == {"title": layer}
        assert success(await rec.call(agent=key)).value == layer


# tools/change


async def test_change_is_emitted_when_a_tool_comes_or_goes_or_a_restriction_changes(rec: Recorder) -> None:
    scope = rec.ctx.scope()
    rec.ctx.on("tools/change", lambda: rec.log("change"))
    changes: list[int] = []

    def step(result: Any) -> Any:
        changes.append(len(rec.stages))
        rec.stages.clear()
        return result

    undo = step(rec.tool())
    lift = step(scope.ctx.tools.restrict(deny=["echo"]))
    step(lift())
    step(lift())
    step(undo())
    step(undo())
    assert [min(change, 1) for change in changes] == [1, 1, 1, 0, 1, 0]


async def test_change_alone_is_not_filtered_by_scope(rec: Recorder) -> None:
    one, two = rec.ctx.scope(), rec.ctx.scope()
    one.ctx.on("tools/change", lambda: rec.log("change"))
    rec.tool(ctx=two.ctx)
    assert rec.stages == ["change"]


# execution_mode


async def test_the_mode_is_that_of_the_visible_definition(rec: Recorder) -> None:
    scope, hidden = rec.ctx.scope(), rec.ctx.scope()
    rec.tool(is_concurrency_safe=lambda args: True)
    rec.tool(ctx=scope.ctx)
    hidden.ctx.tools.restrict(deny=["echo"])
    modes = [rec.ctx.tools.execution_mode(rec.input(agent=agent)) for agent in (None, scope.key, hidden.key)]
    assert modes == ["parallel", "exclusive", "exclusive"]


async def test_a_classifier_judges_by_the_arguments(rec: Recorder) -> None:
    rec.tool(is_concurrency_safe=lambda args: args["read_only"] is True)
    modes = [rec.ctx.tools.execution_mode(rec.input("echo", {"read_only": answer})) for answer in (True, False)]
    assert modes == ["parallel", "exclusive"]


@pytest.mark.parametrize("answer", [1, "parallel", None, False, [True]], ids=repr)
async def test_anything_but_true_is_exclusive(rec: Recorder, answer: Any) -> None:
    rec.tool(is_concurrency_safe=lambda args: answer)
    assert rec.ctx.tools.execution_mode(rec.input()) == "exclusive"


async def test_arguments_that_are_no_json_are_exclusive(rec: Recorder) -> None:
    rec.tool(is_concurrency_safe=lambda args: True)
    assert rec.ctx.tools.execution_mode(rec.input("echo", {"x": object()})) == "exclusive"


async def test_a_classifier_cannot_change_the_callers_arguments(rec: Recorder) -> None:
    arguments = {"x": 1}
    rec.tool(is_concurrency_safe=lambda args: args.clear() is None)
    assert rec.ctx.tools.execution_mode(rec.input("echo", arguments)) == "exclusive"
    assert arguments == {"x": 1}


# present_as


async def test_a_mode_needs_a_scope(rec: Recorder) -> None:
    with pytest.raises(Exception, match="scope"):
        rec.ctx.tools.present_as("code")


async def test_a_scope_has_one_mode(rec: Recorder) -> None:
    scope = rec.ctx.scope()
    undo = scope.ctx.tools.present_as("code")
    with pytest.raises(Exception, match="present"):
        scope.ctx.tools.present_as("native")
    undo()
    undo()
    scope.ctx.tools.present_as("native")


async def test_an_unknown_mode_is_an_error(rec: Recorder) -> None:
    with pytest.raises(Exception, match="loud"):
        rec.ctx.scope().ctx.tools.present_as("loud")


@pytest.mark.parametrize(("mode", "direct"), [("native", True), ("both", True), ("code", False)])
async def test_in_mode_code_alone_a_direct_call_does_not_reach_a_tool(rec: Recorder, mode: str, direct: bool) -> None:
    scope = rec.ctx.scope()
    scope.ctx.tools.present_as(mode)
    rec.tool()
    rec.observe("R")
    result = await rec.call(agent=scope.key)
    if direct:
        success(result)
    else:
        assert "run_code" in failure(result, "UNKNOWN_TOOL").error.message
        assert rec.stages == ["result:R"]


async def test_in_mode_code_a_call_with_a_parent_reaches_a_tool(rec: Recorder) -> None:
    scope = rec.ctx.scope()

    async def outer(args: Any, exec: Any) -> str:
        sub = await rec.call("inner", parent=exec.token, signal=exec.signal, agent=scope.key)
        return success(sub).value

    scope.ctx.tools.present_as("code")
    rec.tool("echo", outer)
    rec.tool("inner")
    assert success(await rec.call()).value == "ran:inner"


async def test_the_nearest_scopes_mode_counts(rec: Recorder) -> None:
    parent = rec.ctx.scope()
    child, sibling = rec.ctx.scope(parent=parent.key), rec.ctx.scope(parent=parent.key)
    parent.ctx.tools.present_as("code")
    child.ctx.tools.present_as("native")
    rec.tool()
    success(await rec.call(agent=child.key))
    failure(await rec.call(agent=sibling.key), "UNKNOWN_TOOL")
    success(await rec.call())


async def test_a_mode_that_is_undone_gives_way_to_the_one_above(rec: Recorder) -> None:
    scope = rec.ctx.scope()
    undo = scope.ctx.tools.present_as("code")
    rec.tool()
    failure(await rec.call(agent=scope.key), "UNKNOWN_TOOL")
    undo()
    success(await rec.call(agent=scope.key))


async def test_a_registered_plain_tool_needs_no_renderer(rec: Recorder) -> None:
    rec.ctx.tools.register(plain(lambda args, exec: 1))
    assert success(await rec.call()).value == 1
