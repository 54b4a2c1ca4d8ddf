"""Results in MCP's form, and their limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dsh_hookspecs import (
    ContextMessage,
    ToolErrorInfo,
    ToolExecutionFailure,
    ToolExecutionSuccess,
    ToolFailure,
)
from dsh_plugin_mcp_server._limits import Limits, is_deeper
from dsh_plugin_mcp_server._results import ResultForm, block
from mcp_types import CallToolResult

FORM = ResultForm(Limits(max_bytes=2000, max_depth=20))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def success(value: Any, **more: Any) -> ToolExecutionSuccess:
    return ToolExecutionSuccess(value, [text("shown")], **more)


def test_a_success_carries_content_and_the_canonical_value() -> None:
    """An object is structured content in every protocol version."""
    wire = {"content": [text("shown")], "isError": False, "structuredContent": {"a": None}}
    assert FORM.of(success({"a": None}), modern=False) == wire
    assert FORM.of(success({"a": None}), modern=True) == wire


@pytest.mark.parametrize("value", ["text", 1, [1, 2], True])
def test_a_value_that_is_no_object_is_structured_content_since_2026(value: Any) -> None:
    """Older protocols allow objects alone there; the content says it all the same."""
    assert "structuredContent" not in FORM.of(success(value), modern=False)
    assert FORM.of(success(value), modern=True)["structuredContent"] == value


def test_a_failure_is_a_tool_error_with_its_content_and_nothing_else() -> None:
    """Neither the error's info nor its meta leaves the host."""
    failed = ToolExecutionFailure(
        ToolFailure("secret detail", ToolErrorInfo("SomeError", "CODE", "plugin")), [text("Error: no")], meta={"m": 1}
    )
    assert FORM.of(failed, modern=False) == {"content": [text("Error: no")], "isError": True}


def test_meta_stays_in_the_host() -> None:
    """It is for the host's own presentation."""
    assert "secret" not in json.dumps(FORM.of(success({}, meta={"m": "secret"}), modern=True))


def test_context_messages_follow_the_content() -> None:
    """They are meant for the model's next turn, and MCP has no other way to it."""
    context = ContextMessage([text("remember")], "policy", meta={"m": "secret"})
    wire = FORM.of(success({}, additional_contexts=[context]), modern=False)
    assert wire["content"] == [text("shown"), text("remember")]


def test_a_result_that_is_too_large_becomes_an_error() -> None:
    """The client gets one sentence instead, with the size and the limit."""
    wire = FORM.of(success({"a": "x" * 2000}), modern=False)
    assert wire["isError"] is True
    assert "structuredContent" not in wire
    assert "more than 2,000" in wire["content"][0]["text"]


def test_a_result_that_is_too_deep_becomes_an_error() -> None:
    """However deep it is."""
    assert FORM.of(success({"a": nested(17)}), modern=False)["isError"] is False
    for depth in (20, 400, 100_000):
        wire = FORM.of(success({"a": nested(depth)}), modern=False)
        assert wire["isError"] is True
        assert "deeper than 20 levels" in wire["content"][0]["text"]


@pytest.mark.parametrize(
    ("value", "depth"), [(1, 0), ([], 1), ({"a": 1}, 1), ({"a": []}, 2), ([1, [2, {"b": ()}]], 4), (nested(300), 300)]
)
def test_depth_counts_arrays_and_objects(value: Any, depth: int) -> None:
    """A scalar has none."""
    assert not is_deeper(value, depth)
    assert depth == 0 or is_deeper(value, depth - 1)


@pytest.mark.parametrize(
    "known",
    [
        text("hello"),
        {"type": "text", "text": "hello", "annotations": {"audience": ["user"]}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "hi"}},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
    ],
)
def test_blocks_that_mcp_knows_pass(known: dict[str, Any]) -> None:
    """As they are."""
    assert block(known) == known


@pytest.mark.parametrize(
    "strange",
    [
        {"type": "chart", "points": [1, 2]},
        {"type": "image"},
        {"type": "text", "text": 7},
        {"type": "text", "text": "hello", "annotations": "loud"},
        {"type": None},
    ],
)
def test_blocks_that_mcp_does_not_know_become_text(strange: dict[str, Any]) -> None:
    """No client is given a block that makes it refuse the whole result."""
    shown = block(strange)
    assert shown["type"] == "text"
    assert json.loads(shown["text"]) == strange
    CallToolResult.model_validate({"content": [shown]})
