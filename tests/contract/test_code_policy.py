"""Contract 7: every sub-call of a program goes through the whole pipeline."""

# ruff: noqa: A001, A006 - listeners and bodies take their arguments by these names

from __future__ import annotations

from typing import Any

import pytest
import trio
from code_kit import Programs, programs
from pipeline_kit import Clockwork, Recorder, callbacks_of, code, failure, success

from dsh_runtime import AbortController, Ask, Block, Deny, ScopeKey

CAUGHT = """
try:
    return await tools.echo({"n": 1})
except ToolCallError as error:
    return [error.code, error.message]
"""


async def test_a_sub_call_goes_through_every_stage_inside_the_outer_one() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo", finalized=False)
        rec.passers()
        rec.guard("G")
        await run.result("return await tools.echo()")
    one = ["pre-execute:P", "guard:G", "execute:X"]
    inner = [*one, "body:echo", "render", "post-execute:Q", "result:R"]
    assert rec.stages == [*one, *inner, "post-execute:Q", "result:R"]


async def test_a_sub_call_knows_where_it_belongs() -> None:
    agent = ScopeKey("agent")
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.observe("R")
        await run.result("await tools.echo()\nawait tools.echo()", call_id="outer", agent=agent)
    first, second, outer = rec.executions
    assert [first.call_id, second.call_id] == ["outer:code:1", "outer:code:2"]
    assert first.parent is second.parent is outer.token
    assert first.root_call_id == outer.root_call_id == "outer"
    assert first.agent is agent
    assert first.token is not second.token


async def test_the_root_is_handed_on_where_the_program_is_nested_itself() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)

        async def delegate(args: Any, exec: Any) -> str:
            arguments = {"code": "await tools.echo()", "description": "x"}
            call = rec.input("run_code", arguments, call_id="inner", parent=exec.token, root_call_id=exec.root_call_id)
            success(await run.ctx.tools.execute(call))
            return "ok"

        rec.tool("delegate", delegate)
        rec.tool("echo")
        rec.observe("R")
        success(await rec.call("delegate", call_id="top"))
    assert (rec.executions[0].call_id, rec.executions[0].root_call_id) == ("inner:code:1", "top")


async def test_the_body_of_a_denied_sub_call_never_starts() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.pre("P", lambda exec, next: Deny("not today") if exec.name == "echo" else next())
        assert await run.result(CAUGHT) == ["DENIED", "not today"]
    assert not rec.body_ran


async def test_a_guard_denies_a_sub_call() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.guard("G", lambda exec: "guarded" if exec.name == "echo" else None)
        assert await run.result(CAUGHT) == ["GUARDED", "guarded"]
    assert not rec.body_ran


async def test_a_policy_that_fails_fails_the_sub_call() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.pre("P", lambda exec, next: next() if exec.name == "run_code" else 1 / 0)
        assert (await run.result(CAUGHT))[0] == "LISTENER_FAILED"
    assert not rec.body_ran


async def test_a_person_is_asked_about_the_sub_call_and_may_say_no() -> None:
    asked: list[Any] = []

    def answer(request: Any, next: Any) -> str:
        asked.append((request.exec.call_id, request.exec.arguments))
        return "rejected"

    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.pre("P", lambda exec, next: Ask("may it?") if exec.name == "echo" else next())
        run.ctx.on("approval/request", answer)
        agent = run.ctx.scope()
        caught = await run.result(CAUGHT, agent=agent.key, call_id="run")
    assert caught[0] == "APPROVAL_REJECTED"
    assert asked == [("run:code:1", {"n": 1})]
    assert not rec.body_ran


async def test_a_blocked_result_gives_the_program_no_value() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo", lambda args, exec: "the secret")
        rec.post("Q", lambda exec, result, next: Block("too hot") if exec.name == "echo" else next())
        assert await run.result(CAUGHT) == ["BLOCKED", "too hot"]


async def test_arguments_that_the_tool_refuses_are_told_to_the_program() -> None:
    from dsh_runtime import define_tool

    async with programs() as run:
        spec: Any = {"n": {"type": "string", "required": True}}
        output = {"type": "string"}
        tool = define_tool(name="echo", description="", parameters=spec, output=output, execute=lambda args: "")
        run.ctx.tools.register(tool)
        assert (await run.result(CAUGHT))[0] == "INVALID_ARGS"


async def test_policy_of_the_agents_scope_counts_for_its_sub_calls() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        agent, other = run.ctx.scope(), run.ctx.scope()
        rec.guard("G", "no", ctx=agent.ctx)
        rec.ctx.on("tools/result", lambda exec, result: None)
        assert code(await run.run(CAUGHT, agent=agent.key)) == "GUARDED"  # run_code itself
        assert await run.result(CAUGHT, agent=other.key) == "ran:echo"


async def test_a_tool_that_a_scope_does_not_see_is_unknown_to_its_programs() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        agent = run.ctx.scope()
        agent.ctx.tools.restrict(deny=["echo"])
        assert (await run.result(CAUGHT, agent=agent.key))[0] == "UNKNOWN_TOOL"


async def test_a_policy_that_the_program_itself_was_denied_by_runs_no_program() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.pre("P", lambda exec, next: Deny("no programs"))
        failure(await run.run("pass"), "DENIED")
        assert run.runtime.programs == []


async def test_a_program_starts_no_program() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.pre("P")
        caught = await run.result(
            """
            try:
                await tools.run_code({"code": "pass", "description": "again"})
            except ToolCallError as error:
                return error.code
            """
        )
        assert caught == "UNKNOWN_TOOL"
        assert len(run.runtime.programs) == 1
        assert rec.stages == ["pre-execute:P"] * 2  # policy has seen the name


async def test_the_gate_that_closes_meanwhile_lets_a_program_come_to_rest() -> None:
    clockwork = Clockwork()

    class Fragile:
        name = "fragile"

        def apply(self, ctx: Any) -> None:
            self.ctx = ctx

            async def crash() -> None:
                await clockwork.reached.wait()
                raise RuntimeError("crash")

            ctx.start_soon(crash)

    plugin = Fragile()
    async with programs(plugins=(plugin,), reached=clockwork.reached) as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")

        async def closed() -> None:
            while run.ctx.fiber.kernel.closed_by is None:
                await trio.lowlevel.checkpoint()

        run.runtime.names["closed"] = closed
        assert await run.result("reached.set()\nawait closed()\nreturn await tools.echo()") == "ran:echo"
        failure(await run.run("pass"), "GATE_CLOSED")


# The end of a run.


async def test_what_is_in_flight_at_the_end_is_aborted_and_at_rest_before_the_result() -> None:
    clockwork = Clockwork()
    rested: list[str] = []

    async def endless(args: Any, exec: Any) -> str:
        clockwork.reached.set()
        try:
            await trio.sleep_forever()
        finally:
            rested.append("body")
        return ""

    async with programs(reached=clockwork.reached) as run:
        rec = Recorder(run.ctx)
        rec.tool("endless", endless)
        rec.observe("R", lambda exec, result: rested.append(f"{exec.name} {code(result)}"))
        result = await run.run(
            """
            start(tools.endless())
            await reached.wait()
            raise ValueError("enough")
            """
        )
    failure(result, "CODE_RUN_FAILED")
    assert rested == ["body", "endless ABORTED", "run_code CODE_RUN_FAILED"]


async def test_what_waits_its_turn_at_the_end_never_begins() -> None:
    clockwork = Clockwork()

    async def endless(args: Any, exec: Any) -> str:
        clockwork.reached.set()
        await trio.sleep_forever()
        return ""

    async with programs(reached=clockwork.reached) as run:
        rec = Recorder(run.ctx)
        rec.tool("endless", endless)
        rec.observe("R")
        await run.run(
            """
            start(tools.endless())
            start(tools.endless())
            await reached.wait()
            raise ValueError("enough")
            """
        )
    assert rec.count("body:") == 1
    assert [code(result) for result in rec.results] == ["ABORTED", "ABORTED_BEFORE_DISPATCH", "CODE_RUN_FAILED"]


async def test_an_abort_of_the_outer_call_reaches_the_sub_call_by_its_signal() -> None:
    clockwork, controller = Clockwork(), AbortController()
    reasons: list[Any] = []

    async def endless(args: Any, exec: Any) -> str:
        clockwork.reached.set()
        await exec.signal.wait()
        reasons.append(str(exec.signal.reason))
        return ""

    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("endless", endless)
        async with trio.open_nursery() as nursery:

            async def stop() -> None:
                await clockwork.reached.wait()
                controller.abort("enough")

            nursery.start_soon(stop)
            failure(await run.run("await tools.endless()", signal=controller.signal), "CODE_RUN_FAILED")
    assert "enough" in reasons[0]


async def test_a_caller_that_is_cancelled_leaves_nothing_of_the_program_running() -> None:
    clockwork = Clockwork()

    async def endless(args: Any, exec: Any) -> str:
        clockwork.reached.set()
        await trio.sleep_forever()
        return ""

    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("endless", endless)
        rec.observe("R")
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:

                async def stop() -> None:
                    await clockwork.reached.wait()
                    scope.cancel()

                nursery.start_soon(stop)
                await run.run("await tools.endless()")
        assert scope.cancelled_caught
        assert [(exec.name, code(result)) for exec, result in zip(rec.executions, rec.results, strict=True)] == [
            ("endless", "ABORTED"),
            ("run_code", "ABORTED"),
        ]


async def test_a_sub_call_that_the_program_gives_up_on_is_aborted_and_the_program_goes_on() -> None:
    async def endless(args: Any, exec: Any) -> str:
        await trio.sleep_forever()
        return ""

    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("endless", endless)
        rec.tool("echo")
        rec.observe("R")
        value = await run.result(
            """
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(tools.endless)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
            return await tools.echo()
            """
        )
    assert value == "ran:echo"
    assert [code(result) for result in rec.results] == ["ABORTED", None, None]


async def test_after_the_end_nothing_is_taken_in() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        await run.result("pass")
        (program,) = run.runtime.programs
        reply = await program.bridge.enter("echo", {})()
    assert reply.error.code == "ABORTED"
    assert not rec.body_ran


async def test_the_calls_of_two_programs_have_ids_of_their_own() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.observe("R")
        async with trio.open_nursery() as nursery:
            for name in ("a", "b"):
                nursery.start_soon(run_quietly, run, name)
    assert {exec.call_id for exec in rec.executions} == {"a", "a:code:1", "b", "b:code:1"}


async def run_quietly(run: Programs, call_id: str) -> None:
    await run.result("await tools.echo()", call_id=call_id)


@pytest.mark.parametrize("mode", ["native", "both", "code"])
async def test_a_wrapper_that_runs_the_body_again_runs_a_program_with_ids_of_its_own(mode: str) -> None:
    """No sub-call of a second attempt is taken for one of the first."""
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        rec.observe("R")

        async def twice(exec: Any, next: Any) -> Any:
            if exec.name == "run_code":
                await next()
            return await next()

        rec.around("X", twice)
        agent = run.ctx.scope()
        agent.ctx.tools.present_as(mode)
        result = await run.run("return await tools.echo()", agent=agent.key)
    assert rec.count("body:") == (0 if mode == "native" else 2)
    assert code(result) == ("UNKNOWN_TOOL" if mode == "native" else None)
    sub_calls = [exec.call_id for exec in rec.executions[:-1]]
    assert sub_calls == ([] if mode == "native" else ["run1:code:1", "run1:code:2"])


async def test_a_program_leaves_no_trace_on_a_signal_that_lives_longer() -> None:
    controller = AbortController()
    async with programs() as run:
        Recorder(run.ctx).tool("echo")
        for _ in range(3):
            await run.result("return await tools.echo()", signal=controller.signal)
    assert callbacks_of(controller.signal) == 0
