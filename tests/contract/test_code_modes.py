"""Contract 5.2, 5.3, 5.7 and 7.1: who sees ``run_code``, who sees the other tools, and what a direct call gets."""

# ruff: noqa: A006 - listeners and bodies take their arguments by these names

from __future__ import annotations

from typing import Any

import pytest
from code_kit import programs
from pipeline_kit import Recorder, failure, success

from dsh_runtime import HostError, open_host


def names(ctx: Any, scope: Any = None) -> list[str]:
    return [schema["name"] for schema in ctx.tools.schemas(scope)]


@pytest.mark.parametrize(("mode", "seen"), [("code", ["run_code"]), ("both", ["run_code", "echo"])])
async def test_the_hosts_mode_says_what_a_model_sees(mode: str, seen: list[str]) -> None:
    async with programs(mode=mode) as run:
        Recorder(run.ctx).tool("echo")
        assert names(run.ctx) == seen


@pytest.mark.parametrize(
    ("mode", "seen"), [("native", ["echo"]), ("code", ["run_code"]), ("both", ["run_code", "echo"])]
)
async def test_a_scopes_mode_goes_before_the_hosts(mode: str, seen: list[str]) -> None:
    async with programs(mode="native") as run:
        Recorder(run.ctx).tool("echo")
        scope = run.ctx.scope()
        scope.ctx.tools.present_as(mode)
        assert names(run.ctx, scope.key) == seen
        assert (run.ctx.tools.get("run_code", scope.key) is not None) == ("run_code" in seen)
        assert names(run.ctx) == ["echo"]
        assert run.ctx.tools.get("run_code") is None


async def test_in_mode_native_run_code_is_an_unknown_tool() -> None:
    async with programs(mode="native") as run:
        failure(await run.run("pass"), "UNKNOWN_TOOL")
        assert run.runtime.programs == []


async def test_a_mode_that_is_undone_takes_run_code_along() -> None:
    async with programs(mode="native") as run:
        scope = run.ctx.scope()
        undo = scope.ctx.tools.present_as("both")
        success(await run.run("pass", agent=scope.key))
        undo()
        failure(await run.run("pass", agent=scope.key), "UNKNOWN_TOOL")


async def test_run_code_that_goes_while_policy_thinks_does_not_run() -> None:
    async with programs(mode="native") as run:
        scope = run.ctx.scope()
        undo = scope.ctx.tools.present_as("both")
        Recorder(run.ctx).pre("P", lambda exec, next: undo() or next())
        failure(await run.run("pass", agent=scope.key), "UNKNOWN_TOOL")
        assert run.runtime.programs == []


async def test_run_code_stands_outside_restrictions() -> None:
    async with programs() as run:
        Recorder(run.ctx).tool("echo")
        Recorder(run.ctx).tool("other")
        scope = run.ctx.scope()
        scope.ctx.tools.restrict(allow=["echo"])
        assert names(run.ctx, scope.key) == ["run_code", "echo"]
        for names_of in ({"allow": ["run_code"]}, {"deny": ["run_code"]}):
            with pytest.raises(Exception, match="reserved"):
                run.ctx.scope().ctx.tools.restrict(**names_of)


async def test_the_names_that_a_restriction_may_give_do_not_include_run_code() -> None:
    async with programs() as run:
        Recorder(run.ctx).tool("echo")
        with pytest.raises(Exception, match=r"inherited are: echo$"):
            run.ctx.scope().ctx.tools.restrict(deny=["missing"])


async def test_nobody_else_registers_run_code() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        with pytest.raises(Exception, match="reserved"):
            rec.tool("run_code")
        with pytest.raises(Exception, match="reserved"):
            rec.tool("run_code", ctx=run.ctx.scope().ctx)


@pytest.mark.parametrize(
    ("name", "route"),
    [
        ("echo", "tools.echo("),
        ("odd-name", 'tools["odd-name"]('),
        ("_hidden", 'tools["_hidden"]('),
        ("class", 'tools["class"]('),
        ('a"b', 'tools["a\\"b"]('),
        ("ﬁle", 'tools["ﬁle"]('),
    ],
)
async def test_a_direct_call_is_told_the_route_that_leads_there(name: str, route: str) -> None:
    async with programs(mode="code") as run:
        rec = Recorder(run.ctx)
        rec.tool(name)
        rec.pre("P")
        assert route in failure(await rec.call(name), "UNKNOWN_TOOL").error.message
        assert rec.stages == []  # Neither policy nor the tool's finalizer has heard of it.
        assert await run.result(f"return await {route}{{}})") == f"ran:{name}"


async def test_only_the_token_of_a_call_under_way_opens_the_native_tools() -> None:
    async with programs(mode="code") as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        tokens: list[Any] = []
        rec.observe("R", lambda exec, result: tokens.append(exec.token))
        success(await run.run("pass"))
        failure(await rec.call("echo", parent=tokens[0]), "UNKNOWN_TOOL")


async def test_tools_change_is_told_when_run_code_or_a_mode_comes() -> None:
    told: list[int] = []
    async with programs(mode="native") as run:
        run.ctx.on("tools/change", lambda: told.append(1))
        scope = run.ctx.scope()
        undo = scope.ctx.tools.present_as("both")
        assert told == [1]
        undo()
        assert told == [1, 1]


async def test_run_code_is_exclusive_in_a_batch() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        assert run.ctx.tools.execution_mode(rec.input("run_code", {"code": "", "description": ""})) == "exclusive"


# [host.code]


@pytest.mark.parametrize(
    ("host", "there"),
    [
        ({}, False),
        ({"presentation": "both"}, True),
        ({"presentation": "code"}, True),
        ({"code": {"spares": 0}}, True),
        ({"code": {"enabled": True}}, True),
        ({"code": {"enabled": False}}, False),
        ({"code": {}}, True),
    ],
)
async def test_code_mode_is_on_where_it_is_configured_or_needed(host: dict[str, Any], there: bool) -> None:
    async with open_host({"host": host}) as running:
        assert (running.ctx.get("code_mode") is not None) == there
        assert (running.ctx.get("code_runtime") is not None) == there


@pytest.mark.parametrize("mode", ["code", "both"])
async def test_a_presentation_that_needs_what_is_switched_off_stops_the_start(mode: str) -> None:
    with pytest.raises(HostError, match=rf"presentation = '{mode}'.*enabled = false"):
        async with open_host({"host": {"presentation": mode, "code": {"enabled": False}}}):
            pass


async def test_a_runtime_that_no_plugin_provides_stops_the_start() -> None:
    with pytest.raises(HostError, match="code_runtime"):
        async with open_host({"host": {"code": {"runtime": "plugin"}}}):
            pass


async def test_the_two_runtimes_are_not_mixed_up() -> None:
    """A plugin that provides a runtime beside the host's own is told so."""
    from code_kit import InProcess

    with pytest.raises(HostError, match="code_runtime"):
        async with open_host({"host": {"code": {}}}, plugins=[InProcess()]):
            pass


async def test_run_code_goes_and_comes_with_the_runtime() -> None:
    """While nobody provides one, there is no tool that promises to run programs."""
    async with programs() as run:
        fiber = next(plugin.fiber for plugin in run.host.plugins if plugin.row is None and plugin.id == "code_runtime")
        assert "run_code" in names(run.ctx)
        await fiber.dispose()
        assert names(run.ctx) == []
