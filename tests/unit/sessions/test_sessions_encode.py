"""From events to text and back: what is masked, what is cut, what stays whole."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from dsh_hookspecs import ToolExecutionSuccess
from hypothesis import given
from hypothesis import strategies as st
from sessions_kit import Masker, call

from dsh_runtime.services.sessions.bounds import cut_down, json_size, weighs_more
from dsh_runtime.services.sessions.encode import MARGIN, encode, is_large
from dsh_runtime.services.sessions.events import (
    ApprovalAsked,
    ApprovalDecided,
    CodeDispatch,
    CodeDispatchStart,
    Event,
    PluginState,
    SessionStarted,
    ToolCall,
    ToolResult,
    event_of,
)
from dsh_runtime.services.sessions.journal import Scribe, call_event, result_event
from dsh_runtime.tools.story import Story
from dsh_runtime.values import snapshot_json
from dsh_runtime.values.compact import dump

LIMIT = 1_048_576
json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
blocks = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text()}), max_size=3)
some_text = st.none() | st.text()
events: Any = st.one_of(
    st.builds(SessionStarted, label=st.text(), front_door=st.text(), agent=some_text, pid=st.none() | st.integers()),
    st.builds(ToolCall, call_id=st.text(), name=st.text(), digest=st.text(), root=some_text, arguments=json_values),
    st.builds(ApprovalAsked, digest=st.text(), deadline=st.none() | st.just(30.0), reason=some_text),
    st.builds(ApprovalDecided, digest=st.text(), outcome=st.text(), channel=some_text),
    st.builds(ToolResult, outcome=st.text(), code=some_text, content=blocks, meta=json_values, story=json_values),
    st.builds(CodeDispatchStart, sub_call_id=st.text(), name=st.text()),
    st.builds(CodeDispatch, sub_call_id=st.text(), name=st.text(), is_error=st.booleans(), content=blocks),
    st.builds(PluginState, plugin=st.text(), name=st.text(), state=st.text(), previous=st.text(), error=some_text),
)


def text_result(text: str) -> ToolResult:
    return ToolResult(outcome="success", content=[{"type": "text", "text": text}])


@given(events)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    """Nothing is lost between an event and its row."""
    assert event_of(event.type, json.loads(encode(event, None, LIMIT).text)) == event


@given(json_values)
def test_the_size_of_a_value_is_that_of_its_text(value: Any) -> None:
    """The size that a note states is the true one."""
    assert json_size(value) == len(dump(value).encode())


@given(json_values, st.integers(0, 100))
def test_what_weighs_more_is_longer(value: Any, limit: int) -> None:
    """The quick look never calls a text large that is small."""
    if weighs_more(value, limit):
        assert len(dump(value)) > limit


@given(json_values, st.integers(4_096, 5_000), st.sampled_from(["x", "ü", "\0", "☃", "😀"]))
def test_a_payload_keeps_the_limit(value: Any, limit: int, char: str) -> None:
    """Whatever is logged, a row is no larger than the config allows."""
    event = ToolResult(outcome="success", content=[{"type": "text", "text": char * 6_000}], meta=value)
    assert len(encode(event, None, limit).text.encode()) <= limit


def test_what_is_cut_says_so_and_how_large_it_was() -> None:
    """A reader of the log sees the beginning, and the true size."""
    event = text_result("x" * 20_000)
    payload = json.loads(encode(event, None, 10_000).text)
    [block] = payload["content"]
    assert payload["cut"] == len(dump(event.payload()))
    assert block["text"].startswith("xxx")
    assert block["text"].endswith("… [cut]")


def test_a_call_with_huge_arguments_keeps_its_name_and_digest() -> None:
    """What identifies a call is never cut."""
    event = ToolCall(call_id="c1", name="echo", digest="d" * 64, arguments={"text": "x" * 50_000})
    payload = json.loads(encode(event, None, 4_096).text)
    assert (payload["call_id"], payload["name"], payload["digest"]) == ("c1", "echo", "d" * 64)


def test_a_huge_message_leaves_room_for_what_follows() -> None:
    """One giant does not push out the rest."""
    event = ToolResult(outcome="failure", error={"message": "x" * 50_000}, meta={"lines": 3})
    assert json.loads(encode(event, None, 8_192).text)["meta"] == {"lines": 3}


def test_a_giant_costs_no_more_memory_than_its_window() -> None:
    """Of 100 MB of content, only what is kept (and a margin) is ever copied."""
    event = text_result("0123456789" * 10_000_000)
    tracemalloc.start()
    try:
        encoded = encode(event, Masker(), LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * LIMIT
    assert json.loads(encoded.text)["cut"] > 100_000_000


@pytest.mark.parametrize(
    "event",
    [
        ToolCall(call_id="c", name="t", digest="d", arguments={"hunter2": 1}),
        ToolCall(call_id="c", name="t", digest="d", arguments={"a": [{"b": ["x hunter2 y"]}]}),
        ToolResult(outcome="failure", error={"message": "login as hunter2 failed", "name": "ValueError"}),
        ToolResult(outcome="success", content=[{"type": "text", "text": "hunter2"}]),
        ToolResult(outcome="success", meta={"hunter2": ["hunter2"]}),
        ToolResult(outcome="success", story=[{"stage": "tools/pre-execute", "detail": "hunter2"}]),
        ApprovalAsked(digest="d", reason="runs with hunter2"),
        CodeDispatch(sub_call_id="s", name="t", is_error=True, content=[{"type": "text", "text": "hunter2"}]),
        PluginState(plugin="p", name="p", state="failed", previous="loading", error="KeyError: hunter2"),
        SessionStarted(label="hunter2", front_door="cli", agent="hunter2"),
    ],
    ids=lambda event: event.type,
)
def test_secrets_are_masked_wherever_they_stand(event: Event) -> None:
    """Names of arguments, nested values, messages, exceptions: nothing is written before the redactor saw it."""
    text = encode(event, Masker("hunter2"), LIMIT).text
    assert "hunter2" not in text
    assert "***" in text


@pytest.mark.parametrize("at", range(4_080, 4_110, 3))
def test_a_secret_that_the_limit_cuts_in_two_is_masked(at: int) -> None:
    """The redactor sees more than is kept."""
    event = text_result("x" * (at // 2) + "hunter2" + "x" * 20_000)
    assert "hunt" not in encode(event, Masker("hunter2"), 4_096).text


def test_a_secret_that_the_window_cuts_in_two_is_dropped() -> None:
    """The end of what the redactor saw is never kept, though masking made the rest short."""
    secret = "hunter2" * 100
    window = 4_096 + MARGIN
    text = (secret * (window // len(secret) + 10))[: window * 2]
    assert "hunter2" not in encode(text_result(text), Masker(secret), 4_096).text


def test_what_the_redactor_fails_on_is_withheld() -> None:
    """A broken redactor lets nothing through."""

    class Broken(Masker):
        def value(self, value: Any) -> Any:
            raise ValueError("hunter2")

    encoded = encode(ToolCall(call_id="c", name="t", digest="d", arguments={"a": "hunter2"}), Broken(), LIMIT)
    assert "hunter2" not in encoded.text
    assert encoded.withheld is not None and "ValueError" in encoded.withheld


def test_values_too_deep_to_encode_are_cut() -> None:
    """A value 100,000 levels deep is logged as far as it goes."""
    deep: Any = "bottom"
    for _ in range(100_000):
        deep = [deep]
    event = ToolCall(call_id="c", name="t", digest="d", arguments={"deep": deep})
    payload = json.loads(encode(event, Masker(), LIMIT).text)
    assert payload["name"] == "t"
    assert payload["cut"] > 200_000


def test_cutting_leaves_small_values_as_they_are() -> None:
    """A value within the budget is copied whole."""
    value = {"a": [1, None, True, "text"], "b": {"c": 1.5}}
    assert cut_down(value, 1_000) == value


words = st.tuples(st.sampled_from(["pass", "success"]), st.none())
notes = st.lists(
    st.tuples(st.text(), some_text, some_text, words, st.floats(0, 9), st.floats(0, 9)),
    max_size=6,
)


@given(notes)
def test_the_text_of_a_story_says_what_the_story_says(notes: list[Any]) -> None:
    """The short way from notes to text leads to the same place."""
    story = Story([(*note[:4], *sorted(note[4:])) for note in notes])
    event = ToolResult(outcome="success", content=[], story=story)
    told = json.loads(encode(event, Masker(), LIMIT, small=True).text)
    assert told == {"outcome": "success", "content": [], "story": story.as_json()}


@pytest.mark.parametrize("small", [True, False])
def test_the_details_of_a_story_are_masked(small: bool) -> None:
    """What a policy says may hold what an argument does."""
    story = Story([("guard", "gate", None, ("deny", "not for hunter2"), 1.0, 2.0)])
    event = ToolResult(outcome="failure", content=[], story=story)
    assert json.loads(encode(event, Masker("hunter2"), LIMIT, small=small).text)["story"] == [
        {"stage": "guard", "plugin": "gate", "answer": "deny", "ms": 1000.0, "detail": "not for ***"}
    ]


def test_a_long_story_is_cut() -> None:
    """A wrapper that tries for ever does not make a row larger than the config allows."""
    steps = [("body", "tools", "echo", ("success", None), float(n), float(n)) for n in range(5_000)]
    event = ToolResult(outcome="success", content=[], story=Story(steps))
    assert is_large(event)
    assert len(encode(event, None, 10_000).text) <= 10_000


def test_of_a_story_the_redactor_sees_the_details() -> None:
    """Each is put back in its place; what the host has written itself is left alone."""
    steps = [{"stage": "body", "detail": "a secret"}, {"stage": "guard"}, {"stage": "secret", "detail": "fine"}]
    event = ToolResult(outcome="success", ms=1.5, content=[], story=steps)
    assert encode(event, Masker("secret"), 10_000).payload == {
        "outcome": "success",
        "ms": 1.5,
        "content": [],
        "story": [{"stage": "body", "detail": "a ***"}, {"stage": "guard"}, {"stage": "secret", "detail": "fine"}],
    }


class Polite(Masker):
    """Gives the very same value back if there is nothing to mask in it, as a redactor does."""

    def value(self, value: Any) -> Any:
        masked = super().value(value)
        return value if masked == value else masked


frozen = json_values.map(snapshot_json)
redactors = st.sampled_from([None, Polite("q"), Masker("q")])


@given(st.text(), st.text(), frozen, some_text, redactors)
def test_the_short_way_of_a_call_leads_where_the_long_one_does(
    call_id: str, name: str, arguments: Any, plugin: str | None, redact: Any
) -> None:
    """Which way a record goes cannot be told from what stands in the log."""
    scribe = Scribe(redact, LIMIT)
    run = call(call_id, name, arguments)
    short = scribe.small_call(run, plugin, None)
    long = scribe.now(call_event(run, plugin, None))
    assert (short.text, short.payload["name"]) == (long.text, long.payload["name"])


@given(blocks, st.none() | frozen, st.none() | frozen, notes, st.floats(0, 10_000), redactors)
def test_the_short_way_of_a_result_leads_where_the_long_one_does(
    content: Any, meta: Any, views: Any, noted: list[Any], ms: float, redact: Any
) -> None:
    """The same of results, with the columns that they fill."""
    scribe = Scribe(redact, LIMIT)
    story = Story([(*note[:4], *sorted(note[4:])) for note in noted])
    result = ToolExecutionSuccess(None, content, meta)
    short = scribe.small_result(result, story, views, ms)
    long = scribe.now(result_event(result, story, views, ms))
    assert json.loads(short.text) == json.loads(long.text)
    assert short.payload["outcome"] == long.payload["outcome"]
