"""The service, and what the model gets to see, in a host."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dsh_hookspecs import (
    AbortController,
    Accept,
    Block,
    ContextMessage,
    PostToolDecision,
    ToolExecutionFailure,
    ToolExecutionSuccess,
)
from dsh_plugin_redact import Redactor

from dsh_runtime import ToolExecutionInput, define_tool, open_host

SECRET = "password=" + "hunter2"
MASKED = "password=[redacted: secret]"
Next = Callable[[], Awaitable[PostToolDecision]]


@asynccontextmanager
async def redacting(**config: Any) -> AsyncIterator[Any]:
    async with open_host({"plugin": [{"id": "redact", "use": "redact", "config": config}]}) as host:
        yield host.ctx


def add(ctx: Any, value: Any, output: Any = None, render: Any = None) -> None:
    async def execute(args: Any, exec: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    schema = output or {"type": "json"}
    ctx.tools.register(
        define_tool(name="work", description="work", parameters={}, output=schema, execute=execute, render=render)
    )


async def call(ctx: Any) -> Any:
    return await ctx.tools.execute(ToolExecutionInput("c1", "work", {}, AbortController().signal))


def text(result: Any) -> str:
    return "".join(block["text"] for block in result.content)


@pytest.mark.trio
async def test_the_service_masks_texts_and_values() -> None:
    async with redacting() as ctx:
        redact = ctx.get("redact")
        assert redact.text(SECRET) == MASKED
        assert redact.value({"token": "x"}) == {"token": "[redacted: secret]"}


@pytest.mark.trio
async def test_the_model_sees_everything_unless_the_config_says_otherwise() -> None:
    async with redacting() as ctx:
        add(ctx, SECRET)
        assert text(await call(ctx)) == SECRET


@pytest.mark.trio
async def test_content_is_masked_and_the_value_kept() -> None:
    async with redacting(model=True) as ctx:
        add(ctx, SECRET)
        result = await call(ctx)
    assert text(result) == MASKED
    assert result.value == SECRET


@pytest.mark.trio
async def test_large_content_is_masked_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []
    whole = Redactor.value

    def value(redactor: Redactor, value: Any) -> Any:
        threads.append(threading.get_ident())
        return whole(redactor, value)

    monkeypatch.setattr(Redactor, "value", value)
    async with redacting(model=True) as ctx:
        add(ctx, f"{SECRET} " * 100)
        assert text(await call(ctx)) == f"{MASKED} " * 100
        here, threads[:] = {*threads}, []
        ctx.tools.register(
            define_tool(
                name="large",
                description="",
                parameters={},
                output={"type": "string"},
                execute=lambda args: SECRET + "x" * 10**6,
            )
        )
        signal = AbortController().signal
        result = await ctx.tools.execute(ToolExecutionInput("c2", "large", {}, signal))
        assert "hunter2" not in text(result)
    assert here == {threading.get_ident()}
    assert threads and threading.get_ident() not in threads


@pytest.mark.trio
async def test_the_value_is_masked_where_the_config_says_so_and_content_rendered_from_it() -> None:
    async with redacting(model=True, value=True) as ctx:
        add(ctx, {"db_password": "hunter2", "n": 1})
        result = await call(ctx)
    assert result.value == {"db_password": "[redacted: secret]", "n": 1}
    assert "hunter2" not in text(result)


@pytest.mark.trio
async def test_a_secret_that_only_the_rendering_puts_together_is_masked_too() -> None:
    def render(args: Any, value: Any) -> Any:
        return [{"type": "text", "text": "=".join(value)}]

    async with redacting(model=True, value=True) as ctx:
        add(ctx, ["password", "hunter2"], render=render)
        result = await call(ctx)
    assert text(result) == MASKED
    assert result.value == ["password", "hunter2"]


@pytest.mark.trio
async def test_a_masked_value_that_no_longer_fits_fails_the_call() -> None:
    spec = {"type": "object", "additionalProperties": False, "properties": {"pin_token": {"type": "integer"}}}
    async with redacting(model=True, value=True) as ctx:
        add(ctx, {"pin_token": 1234}, output=spec)
        result = await call(ctx)
    assert isinstance(result, ToolExecutionFailure)
    assert result.error.info is not None
    assert result.error.info.code == "INVALID_TOOL_OUTPUT"
    assert "1234" not in text(result)


@pytest.mark.trio
async def test_the_content_of_a_failure_is_masked() -> None:
    async with redacting(model=True) as ctx:
        add(ctx, RuntimeError(f"cannot log in with {SECRET}"))
        result = await call(ctx)
    assert text(result) == f"Error: cannot log in with {MASKED}"


@pytest.mark.trio
@pytest.mark.parametrize("fails", [False, True], ids=["success", "failure"])
async def test_what_a_tool_defers_is_masked(fails: bool) -> None:
    async def execute(args: Any, exec: Any) -> Any:
        exec.defer_context(ContextMessage([{"type": "text", "text": SECRET}], f"tool {SECRET}", {"api_key": "hunter2"}))
        exec.defer_context(ContextMessage([{"type": "text", "text": "plain"}], "tool"))
        if fails:
            raise RuntimeError("plain")
        return "plain"

    async with redacting(model=True) as ctx:
        ctx.tools.register(
            define_tool(name="work", description="", parameters={}, output={"type": "json"}, execute=execute)
        )
        result = await call(ctx)
    first, second = result.additional_contexts
    assert first.content == [{"type": "text", "text": MASKED}]
    assert (first.source, first.meta) == (f"tool {MASKED}", {"api_key": "[redacted: secret]"})
    assert second == ContextMessage([{"type": "text", "text": "plain"}], "tool")
    assert result.is_error is fails


@pytest.mark.trio
async def test_the_message_of_a_failure_is_masked() -> None:
    """A program of the model's reads it."""
    async with redacting(model=True) as ctx:
        add(ctx, RuntimeError(f"cannot log in with {SECRET}"))
        result = await call(ctx)
    assert result.error.message == f"cannot log in with {MASKED}"
    assert result.error.info.name == "RuntimeError"


@pytest.mark.trio
async def test_what_policies_behind_it_put_in_place_is_masked() -> None:
    """Instead of what was there."""
    given = Accept(
        deferred_contexts=[ContextMessage([{"type": "text", "text": SECRET}], "policy")], error_message=f"no: {SECRET}"
    )
    async with redacting(model=True) as ctx:
        add(ctx, RuntimeError("failed"))
        ctx.on("tools/post-execute", lambda: given)
        result = await call(ctx)
    assert result.error.message == f"no: {MASKED}"
    assert "hunter2" not in repr(result)


@pytest.mark.trio
async def test_a_result_without_a_secret_is_left_alone() -> None:
    async with redacting(model=True, value=True) as ctx:
        add(ctx, "plain")
        result = await call(ctx)
    assert isinstance(result, ToolExecutionSuccess)
    assert result.value == "plain"
    assert text(result) == "plain"


@pytest.mark.trio
@pytest.mark.parametrize(
    "decision",
    [
        Accept(content=[{"type": "text", "text": SECRET}]),
        Accept(value=SECRET),
        Block(SECRET),
        Block([{"type": "text", "text": SECRET}]),
        Accept(additional_contexts=(ContextMessage([{"type": "text", "text": SECRET}], "policy", {"note": SECRET}),)),
    ],
)
async def test_what_policies_behind_it_say_is_masked(decision: PostToolDecision) -> None:
    async def policy(next: Next) -> PostToolDecision:
        return decision

    async with redacting(model=True) as ctx:
        add(ctx, "plain")
        ctx.on("tools/post-execute", policy, prepend=True)
        result = await call(ctx)
    assert "hunter2" not in repr(result)
    assert MASKED in repr(result)


@pytest.mark.trio
async def test_texts_beside_a_picture_are_masked_and_the_picture_kept() -> None:
    picture = {"type": "image", "data": "sk-" + "A1" * 20, "mimeType": "image/png"}

    def render(args: Any, value: Any) -> Any:
        return [{**picture, "alt": SECRET}, picture]

    async with redacting(model=True) as ctx:
        add(ctx, "plain", render=render)
        result = await call(ctx)
    assert result.content == [{**picture, "alt": MASKED}, picture]
