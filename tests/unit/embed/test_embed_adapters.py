"""A host's tools in other frameworks, with their real packages and test models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from dsh_runtime import Deny, define_tool
from dsh_runtime.embed import EmbeddedHost
from dsh_runtime.embed.names import safe_names
from dsh_runtime.embed.openai import arun_tool_calls, openai_tools, run_tool_calls

NO_LOG: dict[str, Any] = {"host": {"log": {"enabled": False}}}


class Trial:
    """Two tools, one of them with an odd name, and a policy that denies one argument."""

    name = "trial"
    inject = ("tools",)

    def apply(self, ctx: Any) -> None:
        text = {"name": {"type": "string", "required": True}, "config": {"type": "string"}}
        for name in ("greet", "odd.name/ü"):
            ctx.tools.register(
                define_tool(name=name, description="Greets.", parameters=text, output={"type": "string"}, execute=greet)
            )
        ctx.on("tools/pre-execute", self.judge)

    async def judge(self, exec: Any, next: Any) -> Any:
        return Deny("not her") if exec.arguments.get("name") == "Eve" else await next()


async def greet(args: Any) -> str:
    return f"Hello, {args['name']}!"


@pytest.fixture
def host() -> Iterator[EmbeddedHost]:
    with EmbeddedHost(NO_LOG, plugins=[Trial()]) as host:
        yield host


def call(name: str, arguments: str, call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_names_are_made_fit_for_providers_and_kept_apart() -> None:
    names = safe_names(["plain", "a.b", "a/b", "x" * 100, "\N{MAN}"])
    assert names["plain"] == "plain"
    assert len(set(names.values())) == 5
    assert all(name.replace("_", "a").replace("-", "a").isascii() and len(name) <= 64 for name in names.values())


def test_declarations_are_those_of_chat_completions(host: EmbeddedHost) -> None:
    types = pytest.importorskip("openai.types.chat", reason="the openai package is not installed")
    pydantic = pytest.importorskip("pydantic")
    found = openai_tools(host)
    pydantic.TypeAdapter(list[types.ChatCompletionToolParam]).validate_python(found)
    assert json.loads(json.dumps(found[0]["function"]["parameters"]))["required"] == ["name"]


def test_calls_of_an_assistant_become_messages(host: EmbeddedHost) -> None:
    odd = next(tool["function"]["name"] for tool in openai_tools(host) if tool["function"]["name"] != "greet")
    calls = [
        call("greet", '{"name": "Ada"}', "1"),
        call(odd, '{"name": "Bob"}', "2"),
        call("greet", '{"name": "Eve"}', "3"),
        call("greet", "{", "4"),
        call("nothing", "{}", "5"),
    ]
    messages = run_tool_calls(host, calls)
    assert [message["tool_call_id"] for message in messages] == ["1", "2", "3", "4", "5"]
    texts = [message["content"] for message in messages]
    assert texts[:2] == ["Hello, Ada!", "Hello, Bob!"]
    assert "not her" in texts[2]
    assert "no JSON" in texts[3]
    assert "nothing" in texts[4]
    assert asyncio.run(arun_tool_calls(host, calls)) == messages


def test_pydantic_ai_calls_through_the_pipeline(host: EmbeddedHost) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from dsh_runtime.embed.pydantic_ai import HostToolset

    seen: list[str] = []

    def model(messages: list[Any], info: AgentInfo) -> ModelResponse:
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        seen[:] = [part.model_response_str() for part in returned]
        given = [{"name": "Ada"}, {"name": "Eve"}]
        if len(returned) < len(given):
            return ModelResponse(parts=[ToolCallPart("greet", given[len(returned)])])
        return ModelResponse(parts=[TextPart("done")])

    agent = pydantic_ai.Agent(FunctionModel(model), toolsets=[HostToolset(host)])
    assert agent.run_sync("greet").output == "done"
    assert seen[0] == "Hello, Ada!"
    assert "not her" in seen[1]


def test_pydantic_ai_has_its_model_mend_arguments(host: EmbeddedHost) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from dsh_runtime.embed.pydantic_ai import HostToolset

    def model(messages: list[Any], info: AgentInfo) -> ModelResponse:
        parts = [part for message in messages for part in message.parts]
        if any(isinstance(part, ToolReturnPart) for part in parts):
            return ModelResponse(parts=[TextPart("done")])
        mended = any(isinstance(part, RetryPromptPart) for part in parts)
        return ModelResponse(parts=[ToolCallPart("greet", {"name": "Ada"} if mended else {"nom": "Ada"})])

    assert pydantic_ai.Agent(FunctionModel(model), toolsets=[HostToolset(host)]).run_sync("x").output == "done"


def test_pydantic_ai_shows_its_test_model_every_tool(host: EmbeddedHost) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")
    from pydantic_ai.models.test import TestModel

    from dsh_runtime.embed.pydantic_ai import HostToolset

    output = pydantic_ai.Agent(TestModel(), toolsets=[HostToolset(host)]).run_sync("x").output
    assert output.count("Hello, ") == 2


def test_langchain_calls_through_the_pipeline(host: EmbeddedHost) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from dsh_runtime.embed.langchain import langchain_tools

    tools = {tool.name: tool for tool in langchain_tools(host)}
    assert tools["greet"].invoke({"name": "Ada", "config": "x"}) == "Hello, Ada!"
    assert asyncio.run(tools["greet"].ainvoke({"name": "Bob"})) == "Hello, Bob!"
    message = tools["greet"].invoke({"type": "tool_call", "id": "1", "name": "greet", "args": {"name": "Eve"}})
    assert "not her" in message.content
    assert message.artifact.is_error


def test_langchain_shows_models_the_schema_as_it_is(host: EmbeddedHost) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.utils.function_calling import convert_to_openai_tool

    from dsh_runtime.embed.langchain import langchain_tools

    found = [convert_to_openai_tool(tool)["function"]["parameters"] for tool in langchain_tools(host)]
    assert found == [tool["function"]["parameters"] for tool in openai_tools(host)]
