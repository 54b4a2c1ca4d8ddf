"""Contract 6.4: what a body returns or raises, and how its value is checked, rendered and projected."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from pipeline_kit import (
    ANY_JSON,
    Recorder,
    assert_lossless_and_frozen,
    code,
    failure,
    plain,
    plugin,
    raising,
    success,
    text,
)

from dsh_runtime import HarnessError, ToolFailedError, ToolReply, define_tool

# Where a body runs


async def test_a_sync_body_runs_in_a_worker_thread(rec: Recorder) -> None:
    here = threading.get_ident()
    rec.ctx.tools.register(plain(lambda args, exec: threading.get_ident() != here))
    assert success(await rec.call()).value is True


async def test_an_async_body_runs_in_the_hosts_thread(rec: Recorder) -> None:
    async def body(args: Any, exec: Any) -> bool:
        await trio.lowlevel.checkpoint()
        return threading.get_ident() == here

    here = threading.get_ident()
    rec.ctx.tools.register(plain(body))
    assert success(await rec.call()).value is True


async def test_a_sync_body_does_not_block_the_host(rec: Recorder) -> None:
    release = threading.Event()

    def body(args: Any, exec: Any) -> bool:
        return release.wait(10)

    rec.ctx.tools.register(plain(body))
    async with trio.open_nursery() as nursery:
        results: list[Any] = []

        async def call() -> None:
            results.append(await rec.call())

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        release.set()
    assert success(results[0]).value is True


# Bodies that raise


async def test_a_plain_exception_carries_its_class_and_no_code(rec: Recorder) -> None:
    rec.tool("echo", raising(LookupError("lost")))
    result = failure(await rec.call())
    assert result.error.message == "lost"
    assert result.error.info is not None
    assert (result.error.info.name, result.error.info.code) == ("LookupError", None)
    assert result.content == text("Error: lost")


async def test_a_harness_error_carries_its_class_and_code(rec: Recorder) -> None:
    class QuotaError(HarnessError):
        default_code = "QUOTA"

    rec.tool("echo", raising(QuotaError("spent")))
    result = failure(await rec.call(), "QUOTA")
    assert result.error.info is not None
    assert (result.error.message, result.error.info.name) == ("spent", "QuotaError")


async def test_system_exit_in_an_async_body_is_an_ordinary_failure(rec: Recorder) -> None:
    rec.tool("echo", raising(SystemExit(2)))
    assert (await rec.call()).is_error


async def test_system_exit_in_a_threaded_body_is_an_ordinary_failure(rec: Recorder) -> None:
    rec.ctx.tools.register(plain(raising(SystemExit(2))))
    assert (await rec.call()).is_error


async def test_keyboard_interrupt_in_a_body_is_not_swallowed_and_its_result_is_observed(rec: Recorder) -> None:
    rec.tool("echo", raising(KeyboardInterrupt()))
    rec.observe("R")
    with pytest.raises(KeyboardInterrupt):
        await rec.call()
    assert [result.is_error for result in rec.results] == [True]


async def test_keyboard_interrupt_in_a_threaded_body_is_not_swallowed(rec: Recorder) -> None:
    rec.ctx.tools.register(plain(raising(KeyboardInterrupt())))
    rec.observe("R")
    with pytest.raises(KeyboardInterrupt):
        await rec.call()
    assert [result.is_error for result in rec.results] == [True]


async def test_a_group_that_holds_only_keyboard_interrupt_is_not_swallowed(rec: Recorder) -> None:
    rec.tool("echo", raising(BaseExceptionGroup("g", [KeyboardInterrupt()])))
    rec.observe("R")
    with pytest.raises(BaseException) as caught:
        await rec.call()
    assert isinstance(caught.value, KeyboardInterrupt) or caught.group_contains(KeyboardInterrupt)
    assert len(rec.results) == 1


async def test_keyboard_interrupt_beside_an_error_is_not_swallowed(rec: Recorder) -> None:
    rec.tool("echo", raising(BaseExceptionGroup("g", [ValueError("v"), KeyboardInterrupt()])))
    rec.observe("R")
    with pytest.raises(BaseException) as caught:
        await rec.call()
    assert isinstance(caught.value, KeyboardInterrupt) or caught.group_contains(KeyboardInterrupt)
    assert len(rec.results) == 1


async def test_an_exception_group_of_one_reads_as_its_member(rec: Recorder) -> None:
    member = HarnessError("inner", code="INNER")
    rec.tool("echo", raising(ExceptionGroup("outer", [ExceptionGroup("middle", [member])])))
    result = failure(await rec.call(), "INNER")
    assert result.error.message == "inner"
    assert result.error.info is not None
    assert result.error.info.name == "HarnessError"


async def test_a_nursery_in_a_body_that_fails_in_one_task_reads_as_that_failure(rec: Recorder) -> None:
    async def body(args: Any, exec: Any) -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(fail)
        return "never"

    async def fail() -> None:
        raise HarnessError("task", code="TASK")

    rec.tool("echo", body)
    failure(await rec.call(), "TASK")


async def test_an_exception_group_of_two_is_a_failure_without_a_code(rec: Recorder) -> None:
    members = [HarnessError("a", code="A"), HarnessError("b", code="B")]
    rec.tool("echo", raising(ExceptionGroup("both", members)))
    failure(await rec.call())


async def test_a_group_of_system_exit_alone_is_an_ordinary_failure(rec: Recorder) -> None:
    rec.tool("echo", raising(BaseExceptionGroup("g", [SystemExit(3)])))
    assert (await rec.call()).is_error


async def test_stop_iteration_from_a_threaded_body_reads_as_itself(rec: Recorder) -> None:
    rec.ctx.tools.register(plain(raising(StopIteration("dry"))))
    result = failure(await rec.call())
    assert result.error.info is not None
    assert (result.error.info.name, result.error.message) == ("StopIteration", "dry")


async def test_a_body_that_cancels_a_scope_of_its_own_goes_on(rec: Recorder) -> None:
    async def body(args: Any, exec: Any) -> str:
        with trio.move_on_after(0):
            await trio.sleep_forever()
        return "went on"

    rec.tool("echo", body)
    assert success(await rec.call()).value == "went on"


async def test_an_exception_whose_text_cannot_be_had_is_still_a_failure(rec: Recorder) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    rec.tool("echo", raising(MuteError()))
    assert_lossless_and_frozen(failure(await rec.call()))


async def test_a_message_that_json_cannot_carry_is_still_a_failure(rec: Recorder) -> None:
    rec.tool("echo", raising(ValueError("lone \ud800 surrogate")))
    rec.observe("R")
    result = await rec.call()
    assert result.is_error
    json.dumps(result.error.message).encode()
    result.error.message.encode("utf-8")
    assert rec.results == [result]


async def test_a_bodys_failure_is_seen_by_post_listeners(rec: Recorder) -> None:
    seen: list[Any] = []
    rec.tool("echo", raising(ValueError("boom")))
    rec.post("Q", lambda exec, result, next: seen.append(result) or next())
    await rec.call()
    assert [result.error.message for result in seen] == ["boom"]


async def test_a_bodys_failure_is_put_down_to_the_tools_plugin(host: Any) -> None:
    from pipeline_kit import Plugin

    rec = Recorder(host.ctx)
    definition = rec.definition("echo", raising(ValueError("boom")))
    await host.ctx.plugin(Plugin("owner", lambda ctx: ctx.tools.register(definition))).wait()
    assert plugin(await rec.call()) == "owner"


async def test_an_unknown_tool_is_found_where_policy_has_seen_its_name(rec: Recorder) -> None:
    seen: list[str] = []
    rec.pre("P", lambda exec, next: seen.append(exec.name) or next())
    rec.post("Q", lambda exec, result, next: seen.append(code(result) or "") or next())
    result = failure(await rec.call("missing"), "UNKNOWN_TOOL")
    assert seen == ["missing", "UNKNOWN_TOOL"]
    assert "missing" in result.error.message


# Values


NOT_JSON = {
    "bytes": b"x",
    "set": {1},
    "object": object(),
    "nan": float("nan"),
    "infinity": float("inf"),
    "int key": {1: "x"},
    "surrogate": "\ud800",
    "function": print,
}


@pytest.mark.parametrize("value", NOT_JSON.values(), ids=NOT_JSON.keys())
async def test_a_value_that_is_not_json_is_invalid_output(rec: Recorder, value: Any) -> None:
    rec.tool("echo", lambda args, exec: {"a": [value]}, schema=ANY_JSON)
    rec.post("Q")
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")
    assert (rec.count("render"), rec.count("post-execute:Q")) == (0, 1)


async def test_a_circular_value_is_invalid_output(rec: Recorder) -> None:
    circle: list[Any] = []
    circle.append(circle)
    rec.tool("echo", lambda args, exec: circle, schema=ANY_JSON)
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")


async def test_a_value_too_deep_is_invalid_output(rec: Recorder) -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    rec.tool("echo", lambda args, exec: deep, schema=ANY_JSON)
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")


async def test_a_value_that_the_schema_refuses_names_the_place(rec: Recorder) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    rec.tool("echo", lambda args, exec: {"n": "x"}, schema=schema)
    assert "value.n" in failure(await rec.call(), "INVALID_TOOL_OUTPUT").error.message


async def test_a_tuple_is_an_array(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: (1, (2,)), schema={"type": "array"})
    assert success(await rec.call()).value == [1, [2]]


async def test_none_is_a_value(rec: Recorder) -> None:
    async def body(args: Any, exec: Any) -> None:
        return None

    rec.ctx.tools.register(plain(body, {"type": "null"}))
    assert success(await rec.call()).value is None


async def test_a_success_is_frozen_lossless_json_throughout(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: {"a": [{"b": 1}]}, schema=ANY_JSON, meta=lambda args, value: {"m": [1]})
    assert_lossless_and_frozen(success(await rec.call()))


# Rendering and meta


async def test_without_a_renderer_a_text_is_shown_as_itself(rec: Recorder) -> None:
    rec.ctx.tools.register(plain(lambda args, exec: "as it is"))
    assert (await rec.call()).content == text("as it is")


async def test_without_a_renderer_anything_else_is_shown_as_json(rec: Recorder) -> None:
    rec.ctx.tools.register(plain(lambda args, exec: {"a": [1, None]}))
    (block,) = (await rec.call()).content
    assert block["type"] == "text"
    assert json.loads(block["text"]) == {"a": [1, None]}


async def test_the_renderer_gets_frozen_arguments_and_the_frozen_value(rec: Recorder) -> None:
    def render(args: Any, value: Any) -> Any:
        with pytest.raises(TypeError):
            args["x"] = 2
        with pytest.raises(TypeError):
            value["a"] = 2
        return text(f"{args['x']}/{value['a']}")

    rec.tool("echo", lambda args, exec: {"a": 7}, schema=ANY_JSON, render=render)
    assert (await rec.call(arguments={"x": 1})).content == text("1/7")


BAD = {
    "none": None,
    "text": "plain",
    "one block": {"type": "text", "text": "x"},
    "no type": [{"text": "x"}],
    "type no text": [{"type": 5}],
    "not blocks": ["x"],
    "not json": [{"type": "text", "text": b"x"}],
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
async def test_a_rendering_that_is_no_list_of_typed_blocks_is_invalid_output(rec: Recorder, content: Any) -> None:
    rec.tool(render=lambda args, value: content)
    rec.post("Q")
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")
    assert rec.count("post-execute:Q") == 1


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(1), HarnessError("mine", code="MINE")], ids=repr)
async def test_a_renderer_that_raises_is_invalid_output(rec: Recorder, error: BaseException) -> None:
    rec.tool(render=raising(error))
    rec.post("Q")
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")
    assert rec.count("post-execute:Q") == 1


@pytest.mark.parametrize("meta", [lambda *_: object(), raising(ValueError("boom")), lambda *_: {1: 2}])
async def test_meta_that_does_not_hold_is_invalid_output(rec: Recorder, meta: Callable[..., Any]) -> None:
    rec.tool(meta=meta)
    rec.post("Q")
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")
    assert rec.count("post-execute:Q") == 1


async def test_a_nested_call_has_no_meta_and_its_projector_does_not_run(rec: Recorder) -> None:
    async def outer(args: Any, exec: Any) -> Any:
        result = await rec.call("inner", parent=exec.token, root_call_id=exec.root_call_id, signal=exec.signal)
        return success(result).meta

    rec.tool("echo", outer, schema=ANY_JSON)
    rec.tool("inner", meta=lambda args, value: {"m": 1})
    assert success(await rec.call()).value is None
    assert rec.count("meta") == 0


# Typed tools


async def test_a_defined_tool_refuses_arguments_after_policy_has_seen_them(rec: Recorder) -> None:
    ran: list[Any] = []

    async def body(args: Any) -> str:
        ran.append(args)
        return "ok"

    rec.passers()
    rec.ctx.tools.register(
        define_tool(
            name="typed",
            description="Typed.",
            parameters={"n": {"type": "integer", "required": True}},
            output={"type": "string"},
            execute=body,
        )
    )
    failure(await rec.call("typed", {"n": "x"}), "INVALID_ARGS")
    failure(await rec.call("typed", {}), "INVALID_ARGS")
    assert success(await rec.call("typed", {"n": 1})).value == "ok"
    assert len(ran) == 1
    assert rec.count("pre-execute:P") == 3


# Bodies that bring their own content


def image() -> dict[str, str]:
    return {"type": "image", "data": "AAAA", "mimeType": "image/png"}


async def test_a_body_may_bring_the_content_that_goes_with_its_value(rec: Recorder) -> None:
    async def body(args: Any, exec: Any) -> Any:
        return ToolReply({"n": 1}, [image()])

    rec.ctx.tools.register(plain(body))
    result = success(await rec.call())
    assert (result.value, result.content) == ({"n": 1}, [image()])
    assert_lossless_and_frozen(result)


@pytest.mark.parametrize("content", ["text", [{"no": "type"}], [{"type": "text", "text": float("nan")}], None])
async def test_content_of_a_bodys_own_is_checked(rec: Recorder, content: Any) -> None:
    async def body(args: Any, exec: Any) -> Any:
        return ToolReply(1, content)

    rec.ctx.tools.register(plain(body))
    assert code(await rec.call()) == "INVALID_TOOL_OUTPUT"


async def test_a_value_that_comes_with_content_holds_to_the_output_schema(rec: Recorder) -> None:
    async def body(args: Any, exec: Any) -> Any:
        return ToolReply("one", [image()])

    rec.ctx.tools.register(plain(body, schema={"type": "integer"}))
    assert code(await rec.call()) == "INVALID_TOOL_OUTPUT"


async def test_a_tools_own_failure_brings_its_content(rec: Recorder) -> None:
    rec.tool("echo", raising(ToolFailedError("no such file", content=[image()], code="GONE")))
    result = failure(await rec.call(), "GONE")
    assert (result.error.message, result.content) == ("no such file", [image()])


async def test_content_of_a_failure_is_checked(rec: Recorder) -> None:
    rec.tool("echo", raising(ToolFailedError("no such file", content=[{"no": "type"}])))
    assert code(await rec.call()) == "INVALID_TOOL_OUTPUT"
