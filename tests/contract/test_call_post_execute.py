"""Contract 6.5: listeners that look at a result, and what stands of their answers."""

# ruff: noqa: A006  # listeners and bodies take what the hook interface calls exec and next

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import (
    ANY_JSON,
    Plugin,
    Recorder,
    code,
    failure,
    message,
    plugin,
    raising,
    sources,
    success,
    text,
)

from dsh_runtime import Accept, Block, Deny, HarnessError

STRENGTH = ["accept", "content", "value", "block"]
PAIRS = [(outer, inner) for outer in STRENGTH for inner in STRENGTH]


def answer(word: str, by: str) -> Accept | Block:
    contexts = [message(by)]
    if word == "block":
        return Block(f"blocked by {by}", contexts)
    if word == "value":
        return Accept(value=f"value by {by}", additional_contexts=contexts)
    if word == "content":
        return Accept(content=text(f"content by {by}"), additional_contexts=contexts)
    return Accept(additional_contexts=contexts)


def outright(word: str, by: str) -> Any:
    return lambda exec, result, next: answer(word, by)


def having_heard(word: str, by: str) -> Any:
    async def listener(exec: Any, result: Any, next: Any) -> Any:
        await next()
        return answer(word, by)

    return listener


def outcome(result: Any) -> str:
    """Which answer a result shows."""
    if result.is_error:
        assert code(result) == "BLOCKED"
        return "block"
    if result.value != "ran:echo":
        assert result.content == text(result.value)
        return "value"
    return "content" if result.content != text("ran:echo") else "accept"


async def test_the_end_of_the_chain_accepts(rec: Recorder) -> None:
    rec.tool()
    rec.post("A")
    assert outcome(await rec.call()) == "accept"


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
async def test_of_two_answers_outright_the_stronger_stands_and_contexts_add_up(
    rec: Recorder, outer: str, inner: str
) -> None:
    rec.tool()
    rec.post("A", outright(outer, "outer"))
    rec.post("B", outright(inner, "inner"))
    result = await rec.call()
    assert outcome(result) == max(outer, inner, key=STRENGTH.index)
    assert sorted(sources(result)) == ["inner", "outer"]


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
async def test_who_has_heard_answers_for_what_lies_behind(rec: Recorder, outer: str, inner: str) -> None:
    rec.tool()
    rec.post("A", having_heard(outer, "outer"))
    rec.post("B", outright(inner, "inner"))
    result = await rec.call()
    assert outcome(result) == outer
    if outer in ("content", "value", "block"):
        shown = result.error.message if result.is_error else result.content[0]["text"]
        assert "outer" in shown


@pytest.mark.parametrize("word", STRENGTH)
async def test_an_answer_outright_leaves_the_listeners_behind_heard_once(rec: Recorder, word: str) -> None:
    rec.tool()
    rec.post("A", outright(word, "outer"))
    rec.post("B")
    await rec.call()
    assert rec.count("post-execute:B") == 1


async def test_calling_next_without_hearing_it_is_not_enough(rec: Recorder) -> None:
    def call_alone(exec: Any, result: Any, next: Any) -> Any:
        next()
        return Accept()

    rec.tool()
    rec.post("A", call_alone)
    rec.post("B", outright("block", "inner"))
    assert outcome(await rec.call()) == "block"


async def test_every_listener_sees_the_result_of_the_dispatch(rec: Recorder) -> None:
    seen: list[Any] = []
    rec.tool()
    rec.post("A", lambda exec, result, next: seen.append(result) or Accept(value="new"))
    rec.post("B", lambda exec, result, next: seen.append(result) or next())
    await rec.call()
    assert [result.value for result in seen] == ["ran:echo", "ran:echo"]


# Accept


async def test_accepted_content_keeps_value_meta_contexts_and_mark(rec: Recorder) -> None:
    def body(args: Any, exec: Any) -> str:
        exec.conclude_turn()
        exec.defer_context(message("c1"))
        return "ok"

    rec.tool("echo", body, meta=lambda args, value: {"m": 1})
    rec.post("A", lambda exec, result, next: Accept(content=text("short")))
    result = success(await rec.call())
    assert (result.value, result.content, result.meta) == ("ok", text("short"), {"m": 1})
    assert (sources(result), result.concludes_turn) == (["c1"], True)


async def test_an_accepted_value_keeps_contexts_and_mark(rec: Recorder) -> None:
    def body(args: Any, exec: Any) -> str:
        exec.conclude_turn()
        exec.defer_context(message("c1"))
        return "ok"

    rec.tool("echo", body)
    rec.post("A", lambda exec, result, next: Accept(value="new"))
    result = success(await rec.call())
    assert (sources(result), result.concludes_turn) == (["c1"], True)


async def test_none_is_a_value_that_can_be_accepted(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: "secret", schema=ANY_JSON)
    rec.post("A", lambda exec, result, next: Accept(value=None))
    result = success(await rec.call())
    assert result.value is None
    assert "secret" not in str(result)


async def test_an_accepted_value_is_detached(rec: Recorder) -> None:
    value = {"a": [1]}
    rec.tool("echo", schema=ANY_JSON)
    rec.post("A", lambda exec, result, next: Accept(value=value))
    result = success(await rec.call())
    value["a"].append(2)
    assert result.value == {"a": [1]}


@pytest.mark.parametrize("value", [5, object(), float("nan")], ids=["wrong type", "object", "nan"])
async def test_an_accepted_value_that_does_not_hold_is_invalid_output(rec: Recorder, value: Any) -> None:
    rec.tool()
    rec.post("A", lambda exec, result, next: Accept(value=value))
    failure(await rec.call(), "INVALID_TOOL_OUTPUT")


async def test_an_accepted_value_on_a_failure_is_an_error(rec: Recorder) -> None:
    rec.tool("echo", raising(RuntimeError("boom")))
    rec.post("A", lambda exec, result, next: Accept(value="fine"))
    assert (await rec.call()).is_error


async def test_an_accepted_value_cannot_undo_a_denial(rec: Recorder) -> None:
    rec.tool()
    rec.pre("D", lambda exec, next: Deny("no"))
    rec.post("A", lambda exec, result, next: Accept(value="fine"))
    assert (await rec.call()).is_error
    assert not rec.body_ran


async def test_accepted_content_on_a_failure_leaves_it_a_failure(rec: Recorder) -> None:
    rec.tool("echo", raising(HarnessError("boom", code="BOOM")))
    rec.post("A", lambda exec, result, next: Accept(content=text("softer")))
    result = failure(await rec.call(), "BOOM")
    assert (result.content, result.error.message) == (text("softer"), "boom")


async def test_content_and_value_together_are_an_error(rec: Recorder) -> None:
    rec.tool()
    rec.post("A", lambda exec, result, next: Accept(content=text("c"), value="v"))
    assert (await rec.call()).is_error


@pytest.mark.parametrize("content", ["plain", {"type": "text"}, [{"text": "x"}], [{"type": "text", "text": b"x"}]])
async def test_accepted_content_that_is_no_list_of_typed_blocks_is_an_error(rec: Recorder, content: Any) -> None:
    rec.tool()
    rec.post("A", lambda exec, result, next: Accept(content=content))
    rec.observe("R")
    result = await rec.call()
    assert result.is_error
    assert rec.results == [result]


# Block


# What else of a result is told


def deferring(said: Any = "fine") -> Any:
    """A body that defers two contexts and then ends as it is told."""

    async def body(args: Any, exec: Any) -> Any:
        exec.defer_context(message("tool 1"))
        exec.defer_context(message("tool 2"))
        if isinstance(said, Exception):
            raise said
        return said

    return body


@pytest.mark.parametrize("said", ["fine", ValueError("no")], ids=["success", "failure"])
@pytest.mark.parametrize("more", [{}, {"content": text("shown")}], ids=["alone", "with content"])
async def test_what_the_tool_deferred_can_be_replaced(rec: Recorder, said: Any, more: dict[str, Any]) -> None:
    """In its place, in front of what policies add."""
    rec.tool("echo", deferring(said), finalized=False)
    given = Accept(deferred_contexts=[message("masked")], additional_contexts=[message("added")], **more)
    rec.post("A", lambda exec, result, next: given)
    result = await rec.call()
    assert sources(result) == ["masked", "added"]
    assert result.is_error is isinstance(said, Exception)
    assert (result.content == text("shown")) is bool(more)


async def test_what_the_tool_deferred_can_be_replaced_with_the_value(rec: Recorder) -> None:
    rec.tool("echo", deferring())
    rec.post("A", lambda exec, result, next: Accept(value="other", deferred_contexts=()))
    result = success(await rec.call())
    assert (result.value, sources(result)) == ("other", [])


async def test_the_message_of_a_failure_can_be_replaced(rec: Recorder) -> None:
    """Name, code, plugin and content stay as they are."""
    rec.tool("echo", raising(HarnessError("key k1 is wrong", code="NO_KEY")))
    rec.post("A", lambda exec, result, next: Accept(error_message="a key is wrong"))
    result = failure(await rec.call(), "NO_KEY")
    assert (result.error.message, result.error.info.name) == ("a key is wrong", "HarnessError")
    assert result.content == text("Error: key k1 is wrong")


async def test_a_message_for_a_success_is_an_error(rec: Recorder) -> None:
    rec.tool()
    rec.post("A", lambda exec, result, next: Accept(error_message="none there"))
    assert "error message to a success" in failure(await rec.call(), "LISTENER_FAILED").error.message


@pytest.mark.parametrize("wrong", ["", 3, b"x"], ids=repr)
async def test_a_message_that_is_no_text_is_an_error(rec: Recorder, wrong: Any) -> None:
    rec.tool("echo", raising(ValueError("no")))
    rec.post("A", lambda exec, result, next: Accept(error_message=wrong))
    failure(await rec.call(), "LISTENER_FAILED")


@pytest.mark.parametrize("wrong", [3, ["text"], [None]], ids=repr)
async def test_what_replaces_the_tools_contexts_has_to_be_contexts(rec: Recorder, wrong: Any) -> None:
    rec.tool("echo", deferring())
    rec.post("A", lambda exec, result, next: Accept(deferred_contexts=wrong))
    result = await rec.call()
    assert (result.is_error, sources(result)) == (True, [])


@pytest.mark.parametrize("order", [("A", "B"), ("B", "A")], ids="".join)
async def test_what_one_answer_replaces_outright_survives_a_stronger_one(rec: Recorder, order: tuple[str, str]) -> None:
    """Whichever of them stands in front; a mask is not lost because somebody else shortens the content."""
    answers = {
        "A": Accept(deferred_contexts=[message("masked")], error_message="masked"),
        "B": Accept(content=text("short")),
    }
    rec.tool("echo", deferring(ValueError("no")))
    for label in order:
        rec.post(label, lambda exec, result, next, label=label: answers[label])
    result = failure(await rec.call())
    assert (result.error.message, sources(result), result.content) == ("masked", ["masked"], text("short"))


async def test_of_two_that_replace_the_same_outright_the_front_one_stands(rec: Recorder) -> None:
    rec.tool("echo", deferring())
    for label in ("A", "B"):
        rec.post(label, lambda exec, result, next, label=label: Accept(deferred_contexts=[message(label)]))
    assert sources(success(await rec.call())) == ["A"]


async def test_a_block_withdraws_what_was_replaced_too(rec: Recorder) -> None:
    rec.tool("echo", deferring())
    rec.post("A", lambda exec, result, next: Accept(deferred_contexts=[message("masked")]))
    rec.post("B", lambda exec, result, next: Block("no"))
    assert sources(failure(await rec.call(), "BLOCKED")) == []


async def test_a_block_withdraws_value_meta_mark_and_deferred_contexts(rec: Recorder) -> None:
    def body(args: Any, exec: Any) -> str:
        exec.conclude_turn()
        exec.defer_context(message("c1"))
        return "secret"

    rec.tool("echo", body, meta=lambda args, value: {"m": value})
    rec.post("A", lambda exec, result, next: Block("not for you", [message("p1")]))
    result = failure(await rec.call(), "BLOCKED")
    assert "secret" not in str(result)
    assert (result.meta, sources(result)) == (None, ["p1"])


async def test_the_feedback_of_a_block_reaches_the_model(rec: Recorder) -> None:
    rec.tool()
    rec.post("A", lambda exec, result, next: Block("not for you"))
    (block,) = failure(await rec.call(), "BLOCKED").content
    assert block["type"] == "text"
    assert "not for you" in block["text"]


async def test_blocks_of_feedback_are_the_content(rec: Recorder) -> None:
    feedback = [*text("one"), {"type": "image", "data": "aGk=", "mimeType": "image/png"}]
    rec.tool()
    rec.post("A", lambda exec, result, next: Block(feedback))
    assert failure(await rec.call(), "BLOCKED").content == feedback


@pytest.mark.parametrize("feedback", [None, 5, [{"text": "x"}], [object()]], ids=["none", "int", "no type", "object"])
async def test_a_block_with_rubbish_for_feedback_is_still_an_error(rec: Recorder, feedback: Any) -> None:
    rec.tool("echo", lambda args, exec: "secret")
    rec.post("A", lambda exec, result, next: Block(feedback))
    result = await rec.call()
    assert result.is_error
    assert "secret" not in str(result.content)


async def test_a_block_is_put_down_to_its_plugin(host: Any) -> None:
    rec = Recorder(host.ctx)
    rec.tool()
    censor = Plugin("censor", lambda ctx: ctx.on("tools/post-execute", lambda result: Block("no")))
    await host.ctx.plugin(censor).wait()
    assert plugin(failure(await rec.call(), "BLOCKED")) == "censor"


async def test_a_failure_may_be_blocked_too(rec: Recorder) -> None:
    rec.tool("echo", raising(RuntimeError("with a stack of secrets")))
    rec.post("A", lambda exec, result, next: Block("it failed"))
    assert "secrets" not in str(failure(await rec.call(), "BLOCKED"))


# Contexts


async def test_contexts_of_listeners_come_after_those_of_the_tool(rec: Recorder) -> None:
    rec.tool("echo", lambda args, exec: exec.defer_context(message("c1")) or "ok")
    rec.post("A", lambda exec, result, next: Accept(additional_contexts=[message("p1"), message("p2")]))
    assert sources(await rec.call()) == ["c1", "p1", "p2"]


async def test_contexts_may_be_added_to_a_failure(rec: Recorder) -> None:
    rec.tool("echo", raising(RuntimeError("boom")))
    rec.post("A", lambda exec, result, next: Accept(additional_contexts=[message("p1")]))
    result = await rec.call()
    assert result.is_error
    assert sources(result) == ["p1"]


@pytest.mark.parametrize("contexts", [["text"], [None], [{"content": []}], 5], ids=repr)
async def test_contexts_that_are_none_are_an_error(rec: Recorder, contexts: Any) -> None:
    rec.tool()
    rec.post("A", lambda exec, result, next: Accept(additional_contexts=contexts))
    assert (await rec.call()).is_error


# Failing


@pytest.mark.parametrize("given", [None, True, "accept", text("x"), object()], ids=["None", "True", "str", "l", "o"])
async def test_an_answer_of_another_type_fails_the_call(rec: Recorder, given: Any) -> None:
    rec.tool("echo", lambda args, exec: "secret")
    rec.post("A", lambda exec, result, next: given)
    assert "secret" not in str(failure(await rec.call(), "LISTENER_FAILED").content)


async def test_a_listener_that_raises_fails_the_call(rec: Recorder) -> None:
    rec.tool()
    rec.post("A", raising(RuntimeError("boom")))
    failure(await rec.call(), "LISTENER_FAILED")


async def test_a_listeners_own_code_is_kept(rec: Recorder) -> None:
    rec.tool()
    rec.post("A", raising(HarnessError("mine", code="MINE")))
    failure(await rec.call(), "MINE")


@pytest.mark.parametrize("softer", [Accept(), Accept(content=text("fine")), Accept(value="fine")], ids=["a", "c", "v"])
async def test_a_failure_stays_one_although_a_listener_in_front_catches_it(rec: Recorder, softer: Accept) -> None:
    async def catch(exec: Any, result: Any, next: Any) -> Any:
        try:
            return await next()
        except Exception:
            return softer

    rec.tool()
    rec.post("A", catch)
    rec.post("B", raising(RuntimeError("boom")))
    failure(await rec.call(), "LISTENER_FAILED")


async def test_a_failure_that_was_caught_stays_one_although_its_listener_would_accept_by_now(rec: Recorder) -> None:
    async def catch(exec: Any, result: Any, next: Any) -> Any:
        try:
            return await next()
        except Exception:
            return Accept()

    def fail_at_first(exec: Any, result: Any, next: Any) -> Any:
        if rec.count("post-execute:B") == 1:
            raise RuntimeError("boom")
        return next()

    rec.tool()
    rec.post("A", catch)
    rec.post("B", fail_at_first)
    failure(await rec.call(), "LISTENER_FAILED")


async def test_system_exit_in_a_listener_is_an_ordinary_failure(rec: Recorder) -> None:
    rec.tool()
    rec.post("A", raising(SystemExit(1)))
    failure(await rec.call(), "LISTENER_FAILED")
