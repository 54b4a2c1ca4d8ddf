"""Contract 6: what a body may do beside returning, and nested calls."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import pytest
import trio
from dsh_hookspecs import ToolProgress
from pipeline_kit import (
    ANY_JSON,
    Recorder,
    failure,
    message,
    plain,
    raising,
    sources,
    success,
)

from dsh_runtime import AbortController, Deny


async def nested(rec: Recorder, exec: Any, name: str = "inner") -> Any:
    """Call a tool on behalf of a body."""
    return await rec.call(name, parent=exec.token, root_call_id=exec.root_call_id, signal=exec.signal, agent=exec.agent)


# defer_context


async def test_deferred_contexts_keep_their_order_content_and_meta(rec: Recorder) -> None:
    def body(args: Any, exec: Any) -> str:
        for words in ("c1", "c2", "c3"):
            exec.defer_context(message(words))
        return "ok"

    rec.tool("echo", body)
    result = await rec.call()
    assert sources(result) == ["c1", "c2", "c3"]
    assert result.additional_contexts[0] == message("c1")


async def test_deferred_contexts_are_kept_when_the_body_raises(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: exec.defer_context(message("c1")) or raising(RuntimeError("boom"))())
    result = failure(await rec.call())
    assert sources(result) == ["c1"]


async def test_deferred_contexts_are_kept_when_the_body_is_aborted(rec: Recorder) -> None:
    caller = AbortController()

    async def body(args: Any, exec: Any) -> str:
        exec.defer_context(message("c1"))
        caller.abort()
        await trio.sleep_forever()
        return "never"

    rec.tool("echo", body)
    assert sources(failure(await rec.call(signal=caller.signal), "ABORTED")) == ["c1"]


async def test_a_threaded_body_may_defer_contexts(rec: Recorder) -> None:
    rec.ctx.tools.register(plain(lambda args, exec: exec.defer_context(message("c1")) or "ok"))
    assert sources(await rec.call()) == ["c1"]


async def test_a_context_that_json_cannot_carry_never_reaches_a_result(rec: Recorder) -> None:
    broken = type(message("c1"))(content=[{"type": "text", "text": b"x"}], source="broken")
    rec.observe("R")
    rec.tool("echo", lambda args, exec: exec.defer_context(broken) or "ok")
    result = await rec.call()
    assert result.is_error
    assert rec.results == [result]
    assert rec.count("finalize") == 1


# conclude_turn


async def test_conclude_turn_marks_a_success(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: exec.conclude_turn() or "ok")
    assert success(await rec.call()).concludes_turn is True


async def test_without_conclude_turn_a_success_is_not_marked(rec: Recorder) -> None:
    rec.tool()
    assert success(await rec.call()).concludes_turn is False


# progress


async def test_progress_is_observed_at_once_with_the_bodys_execution(rec: Recorder) -> None:
    seen: list[Any] = []

    def body(args: Any, exec: Any) -> str:
        exec.progress(1, 3, "one")
        exec.progress(2)
        rec.log("after")
        return "ok"

    def observer(exec: Any, progress: Any) -> None:
        rec.log("progress")
        seen.append((exec.call_id, progress))

    rec.ctx.on("tools/progress", observer)
    rec.tool("echo", body)
    await rec.call(call_id="mine")
    assert seen == [("mine", ToolProgress(1, 3, "one")), ("mine", ToolProgress(2))]
    assert rec.stages[:4] == ["body:echo", "progress", "progress", "after"]


async def test_progress_of_a_threaded_body_is_observed_before_its_result(rec: Recorder) -> None:
    rec.ctx.on("tools/progress", lambda progress: rec.log(f"progress:{progress.done:g}"))
    rec.observe("R")
    rec.ctx.tools.register(plain(lambda args, exec: exec.progress(1) or exec.progress(2) or "ok"))
    success(await rec.call())
    assert rec.stages == ["progress:1", "progress:2", "result:R"]


async def test_an_observer_of_progress_that_raises_harms_neither_body_nor_call(rec: Recorder) -> None:
    def fail(progress: Any) -> None:
        raise RuntimeError("boom")

    rec.ctx.on("tools/progress", fail)
    rec.tool("echo", lambda args, exec: exec.progress(1) or "ok")
    success(await rec.call())


# What the execution says


async def test_a_root_calls_root_is_its_own_id(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: [exec.call_id, exec.root_call_id, exec.parent], schema=ANY_JSON)
    assert success(await rec.call(call_id="mine")).value == ["mine", "mine", None]


async def test_every_call_has_a_token_of_its_own(rec: Recorder) -> None:
    tokens: list[Any] = []
    rec.tool("echo", lambda args, exec: tokens.append(exec.token) or "ok")
    await rec.call(call_id="same")
    await rec.call(call_id="same")
    assert tokens[0] is not tokens[1]


async def test_the_digest_is_of_name_and_arguments_alone(rec: Recorder) -> None:
    digests: list[str] = []
    for name in ("echo", "other"):
        rec.tool(name, lambda args, exec: digests.append(exec.digest) or "ok")
    await rec.call("echo", {"a": 1, "b": 2})
    await rec.call("echo", {"b": 2, "a": 1})
    await rec.call("echo", {"a": 1, "b": 3})
    await rec.call("other", {"a": 1, "b": 2})
    assert len(set(digests[:1] + digests[2:])) == 3
    assert all(len(bytes.fromhex(digest)) == 32 for digest in digests)


async def test_a_call_that_runs_is_no_dry_run(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: exec.dry_run, schema=ANY_JSON)
    assert success(await rec.call()).value is False


async def test_a_body_cannot_assign_its_execution(rec: Recorder) -> None:
    def body(args: Any, exec: Any) -> str:
        for member in ("name", "arguments", "signal", "token", "agent"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(exec, member, None)
        return "ok"

    rec.tool("echo", body)
    success(await rec.call())


# Nested calls


async def test_a_nested_call_runs_through_the_whole_pipeline(rec: Recorder) -> None:
    async def outer(args: Any, exec: Any) -> str:
        return success(await nested(rec, exec)).value

    rec.passers()
    rec.guard("G")
    rec.tool("echo", outer)
    rec.tool("inner")
    assert success(await rec.call()).value == "ran:inner"
    for stage in ("pre-execute:P", "guard:G", "execute:X", "post-execute:Q", "result:R"):
        assert rec.count(stage) == 2


async def test_a_denied_nested_body_never_starts(rec: Recorder) -> None:
    async def outer(args: Any, exec: Any) -> str:
        failure(await nested(rec, exec), "DENIED")
        return "denied"

    rec.pre("P", lambda exec, next: Deny("no") if exec.parent is not None else next())
    rec.tool("echo", outer)
    rec.tool("inner")
    assert success(await rec.call()).value == "denied"
    assert rec.count("body:inner") == 0


async def test_contexts_and_marks_of_a_nested_call_stay_with_it_unless_handed_on(rec: Recorder) -> None:
    def inner(args: Any, exec: Any) -> str:
        exec.defer_context(message("inner"))
        exec.conclude_turn()
        return "ok"

    async def outer(args: Any, exec: Any) -> str:
        result = await nested(rec, exec)
        if args.get("hand on"):
            for context in result.additional_contexts:
                exec.defer_context(context)
            if result.concludes_turn:
                exec.conclude_turn()
        return "ok"

    rec.tool("echo", outer)
    rec.tool("inner", inner)
    kept = success(await rec.call())
    assert (sources(kept), kept.concludes_turn) == ([], False)
    handed_on = success(await rec.call(arguments={"hand on": True}))
    assert (sources(handed_on), handed_on.concludes_turn) == (["inner"], True)


async def test_the_failure_of_a_nested_call_is_the_bodys_to_judge(rec: Recorder) -> None:
    async def outer(args: Any, exec: Any) -> str:
        failure(await nested(rec, exec), "UNKNOWN_TOOL")
        return "coped"

    rec.tool("echo", outer)
    assert success(await rec.call()).value == "coped"


async def test_the_observer_of_a_nested_call_knows_its_parent_and_root(rec: Recorder) -> None:
    async def outer(args: Any, exec: Any) -> str:
        await nested(rec, exec)
        return "ok"

    rec.observe("R")
    rec.tool("echo", outer)
    rec.tool("inner")
    await rec.call(call_id="root")
    inner, root = rec.executions
    assert (inner.name, inner.parent, inner.root_call_id) == ("inner", root.token, "root")
