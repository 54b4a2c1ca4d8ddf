"""Contract 7: ``run_code``: what a program gets, what comes back, and what a failure looks like."""

# ruff: noqa: A006 - listeners and bodies take their arguments by these names

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing
from code_kit import Programs, programs
from dsh_hookspecs import GenericCall
from pipeline_kit import Recorder, callbacks_of, code, failure, message, plugin, sources, success, text

from dsh_runtime import AbortController, ContextMessage, ToolReply, open_host, present_call
from dsh_runtime.code_mode.interface import CodeFailure, CodeOutcome, CodeProgram, FailureKind

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}


async def test_what_is_returned_and_printed_comes_back_and_nothing_else() -> None:
    async with programs() as run:
        Recorder(run.ctx).tool("secretive", lambda args, exec: "the secret")
        result = success(await run.run("x = await tools.secretive()\nprint('hi')\nreturn [1, {'a': None}]"))
    assert result.value == {"logs": "hi\n", "result": [1, {"a": None}]}
    assert [block["text"] for block in result.content] == ["hi", '[1, {"a": null}]']


async def test_a_program_that_returns_nothing_has_no_result() -> None:
    async with programs() as run:
        result = success(await run.run("pass"))
    assert result.value == {"logs": ""}
    assert len(result.content) == 1


async def test_a_text_is_shown_as_it_is() -> None:
    async with programs() as run:
        assert success(await run.run("return 'a\\nb'")).content == text("a\nb")


async def test_a_sub_call_gives_the_canonical_value() -> None:
    async with programs() as run:
        Recorder(run.ctx).tool("data", lambda args, exec: {"given": args}, schema={}, render=lambda args, value: [])
        assert await run.result("return await tools.data({'n': [1]})") == {"given": {"n": [1]}}


async def test_a_name_that_cannot_stand_behind_a_dot_is_reached_by_subscript() -> None:
    async with programs() as run:
        Recorder(run.ctx).tool("odd-name.x")
        assert await run.result('return await tools["odd-name.x"]()') == "ran:odd-name.x"


async def test_a_failed_sub_call_raises_with_message_name_and_code() -> None:
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("broken", lambda args, exec: 1 / 0)
        caught = await run.result(
            """
            try:
                await tools.broken()
            except ToolCallError as error:
                broken = [error.message, error.name, error.code]
            try:
                await tools.missing()
            except ToolCallError as error:
                return [broken, [error.name, error.code]]
            """
        )
    assert caught == [["division by zero", "ZeroDivisionError", None], ["ToolNotFoundError", "UNKNOWN_TOOL"]]


async def test_a_program_that_fails_is_told_with_its_output_and_traceback() -> None:
    async with programs() as run:
        result = failure(await run.run("print('so far')\n1 / 0"), "CODE_RUN_FAILED")
    assert result.error.message == "the program failed (exception): ZeroDivisionError: division by zero"
    said = "".join(block["text"] for block in result.content)
    assert "Traceback of it" in said
    assert "so far" in said


class Ending:
    """A runtime whose every run ends in one way."""

    name = "ending"
    provides = ("code_runtime",)
    language = "python"

    def __init__(self, outcome: CodeOutcome | BaseException) -> None:
        self.outcome = outcome

    def apply(self, ctx: Any) -> None:
        ctx.provide("code_runtime", self)

    async def run(self, program: CodeProgram) -> CodeOutcome:
        program.bridge.close()
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


async def run_with(outcome: CodeOutcome | BaseException) -> Any:
    config = {"host": {"presentation": "code", "code": {"runtime": "plugin"}}}
    async with open_host(config, plugins=[Ending(outcome)]) as host:
        return await Programs(host, None).run("pass")


@pytest.mark.parametrize("kind", ["exception", "timeout", "aborted", "memory", "output-limit", "crashed"])
async def test_every_kind_of_failure_is_code_run_failed(kind: FailureKind) -> None:
    result = await run_with(CodeOutcome("printed", failure=CodeFailure(kind, "it ended")))
    assert failure(result, "CODE_RUN_FAILED").error.message == f"the program failed ({kind}): it ended"
    assert "printed" in result.content[1]["text"]
    assert plugin(result) == "code-mode"


async def test_what_a_runtime_gives_that_json_cannot_carry_is_made_harmless_or_refused() -> None:
    lone = "a\ud800"
    assert json.dumps(success(await run_with(CodeOutcome(lone))).value["logs"], ensure_ascii=False).encode()
    failure(await run_with(CodeOutcome("", lone, True)), "INVALID_TOOL_OUTPUT")
    failed = failure(await run_with(CodeOutcome(lone, failure=CodeFailure("crashed", lone, lone))), "CODE_RUN_FAILED")
    assert json.dumps([failed.error.message, failed.content], ensure_ascii=False).encode()


async def test_a_runtime_that_cannot_run_anything_fails_the_call_with_its_own_code() -> None:
    from dsh_runtime import HarnessError

    failure(await run_with(HarnessError("no sandbox", code="CODE_SANDBOX_UNAVAILABLE")), "CODE_SANDBOX_UNAVAILABLE")
    assert "bug" in failure(await run_with(ValueError("a bug"))).error.message


async def test_a_runtime_that_gives_up_leaves_no_trace_on_the_callers_signal() -> None:
    """Though it has not closed the bridge."""

    class GivesUp(Ending):
        async def run(self, program: CodeProgram) -> CodeOutcome:
            raise OSError("no more processes")

    controller = AbortController()
    config = {"host": {"presentation": "code", "code": {"runtime": "plugin"}}}
    async with open_host(config, plugins=[GivesUp(CodeOutcome())]) as host:
        failure(await Programs(host, None).run("pass", signal=controller.signal))
    assert callbacks_of(controller.signal) == 0


@pytest.mark.parametrize("arguments", [{}, {"code": "pass"}, {"description": "x"}, {"code": 1, "description": "x"}])
async def test_both_arguments_are_required(arguments: dict[str, Any]) -> None:
    async with programs() as run:
        failure(await Recorder(run.ctx).call("run_code", arguments), "INVALID_ARGS")


async def test_contexts_of_sub_results_come_with_the_outer_result_in_order() -> None:
    def deferring(args: Any, exec: Any) -> str:
        exec.defer_context(message(args["who"]))
        return "ok"

    async with programs() as run:
        Recorder(run.ctx).tool("note", deferring, is_concurrency_safe=lambda args: True)
        result = await run.run("await gather(*(tools.note({'who': w}) for w in 'abc'))")
        failed = await run.run("await tools.note({'who': 'd'})\n1/0")
    assert sources(success(result)) == ["a", "b", "c"]
    assert sources(failure(failed, "CODE_RUN_FAILED")) == ["d"]


async def test_images_and_audio_of_sub_results_are_shown_behind_the_outer_content() -> None:
    reply = ToolReply("ok", [*text("words"), IMAGE, {"type": "resource_link", "uri": "x:y", "name": "z"}, AUDIO])
    async with programs() as run:
        Recorder(run.ctx).tool("draw", lambda args, exec: reply, finalized=False)
        result = await run.run("await tools.draw()\nreturn 1")
        failed = await run.run("await tools.draw()\n1/0")
    assert list(success(result).content) == [*text("1"), IMAGE, AUDIO]
    assert list(failed.content)[-2:] == [IMAGE, AUDIO]


async def test_more_media_than_the_limit_is_left_out_and_told() -> None:
    async with programs({"max_media": 2}) as run:
        Recorder(run.ctx).tool("draw", lambda args, exec: ToolReply("ok", [IMAGE]), finalized=False)
        result = await run.run("for _ in range(5): await tools.draw()\nreturn 1")
    assert list(success(result).content)[1:3] == [IMAGE, IMAGE]
    assert result.content[3]["text"].startswith("[3 more images")


async def test_a_policy_that_replaces_the_outer_value_takes_the_images_with_it() -> None:
    from dsh_runtime import Accept

    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("draw", lambda args, exec: ToolReply("ok", [IMAGE]), finalized=False)
        rec.post("hide", lambda exec, result, next: Accept(value={"logs": ""}) if exec.name == "run_code" else Accept())
        result = success(await run.run("await tools.draw()"))
    assert IMAGE not in list(result.content)


async def test_marks_of_sub_calls_stay_inside() -> None:
    async with programs() as run:
        Recorder(run.ctx).tool("last", lambda args, exec: exec.conclude_turn() or "ok")
        assert not success(await run.run("return await tools.last()")).concludes_turn


async def test_the_card_shows_what_the_program_is_for_and_the_program() -> None:
    async with programs() as run:
        tool = run.ctx.tools.get("run_code")
        arguments = {"code": "return 1", "description": "  count\n to one "}
        view = present_call(tool, type("Exec", (), {"name": "run_code", "arguments": arguments})())
    assert view == GenericCall(title="count to one", kind="execute", content=text("return 1"))


async def test_progress_is_told_after_each_sub_call() -> None:
    heard: list[tuple[str, float, str | None]] = []
    async with programs() as run:
        rec = Recorder(run.ctx)
        rec.tool("a")
        rec.tool("b")
        run.ctx.on("tools/progress", lambda exec, progress: heard.append((exec.name, progress.done, progress.message)))
        await run.result("await tools.a()\nawait tools.b()")
    assert heard == [("run_code", 1, "a"), ("run_code", 2, "b")]


async def test_sub_calls_beyond_the_limit_reach_nothing() -> None:
    async with programs({"sub_calls": 3}) as run:
        rec = Recorder(run.ctx)
        rec.tool("echo")
        caught = await run.result(
            """
            codes = []
            for _ in range(5):
                try:
                    await tools.echo()
                except ToolCallError as error:
                    codes.append(error.code)
            return codes
            """
        )
    assert caught == ["TOO_MANY_CALLS"] * 2
    assert rec.count("body:") == 3


async def test_a_message_that_a_context_cannot_be_fails_the_call_and_not_the_host() -> None:
    """The contexts of a sub-result are frozen already, so handing them on cannot fail."""
    async with programs() as run:
        Recorder(run.ctx).tool("note", lambda args, exec: exec.defer_context(ContextMessage([], "me")) or "ok")
        assert sources(success(await run.run("await tools.note()"))) == ["me"]


async def test_the_time_that_people_take_is_not_the_programs(autojump_clock: trio.testing.MockClock) -> None:
    """The runtime is told of it, an open question included; also where a tool's own call is what is asked about."""
    from dsh_runtime import Ask

    seen: list[float] = []
    async with programs() as run:
        rec = Recorder(run.ctx)

        async def outer(args: Any, exec: Any) -> str:
            call = rec.input("ask", parent=exec.token, agent=exec.agent)
            return success(await run.ctx.tools.execute(call)).value

        async def answer(request: Any, next: Any) -> str:
            await trio.sleep(2)
            seen.append(run.runtime.programs[-1].people_time())
            await trio.sleep(1)
            return "allowed-once"

        rec.tool("ask")
        rec.tool("outer", outer)
        rec.pre("P", lambda exec, next: Ask("may it?") if exec.name == "ask" else next())
        run.ctx.on("approval/request", answer)
        agent = run.ctx.scope()
        await run.result("await tools.ask()\nawait trio.sleep(5)\nawait tools.outer()", agent=agent.key)
        assert seen == [2, 5]
        assert run.runtime.programs[-1].people_time() == 6


async def test_an_abort_ends_the_program_and_keeps_what_it_printed() -> None:
    controller = AbortController()

    def stop() -> None:
        controller.abort("enough")

    async with programs(stop=stop) as run:
        result = await run.run("print('begun')\nstop()\nawait trio.sleep_forever()", signal=controller.signal)
    assert "(aborted)" in failure(result, "CODE_RUN_FAILED").error.message
    assert "begun" in result.content[1]["text"]


async def test_a_call_that_was_aborted_before_it_began_runs_no_program() -> None:
    controller = AbortController()
    controller.abort("never mind")
    async with programs() as run:
        assert code(await run.run("pass", signal=controller.signal)) == "ABORTED_BEFORE_DISPATCH"
        assert run.runtime.programs == []
