"""Code Mode for MCP clients: what they see, per host and per client, and a program by way of ``run_code``."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_hookspecs import HarnessError
from dsh_plugin_mcp_server._config import ClientConfig
from dsh_plugin_mcp_server._http.clients import ClientConfigError, Clients, check_configs
from dsh_plugin_mcp_server._http.tokens import Token

CODE: dict[str, Any] = {"code": {"spares": 0}}


async def say(args: Any, exec: Any) -> dict[str, Any]:
    return {"said": args.get("text")}


async def names_of(client: Any) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize(
    ("host", "own", "seen"),
    [
        ("native", None, ["say"]),
        ("code", None, ["run_code"]),
        ("both", None, ["run_code", "say"]),
        ("native", "code", ["run_code"]),
        ("code", "native", ["say"]),
        ("code", "both", ["run_code", "say"]),
    ],
)
async def test_the_list_follows_the_mode_of_the_host_or_of_the_server(
    serve: Any, host: str, own: str | None, seen: list[str]
) -> None:
    """The server's own setting goes before the host's."""
    async with serve({**CODE, "presentation": host}, presentation=own) as served:
        served.offer("say", say)
        async with served.client() as client:
            assert await names_of(client) == seen


async def test_a_program_calls_the_tools_that_the_client_cannot(serve: Any) -> None:
    """The direct call is told the route; the program takes it; every call is observed."""
    async with serve(CODE, presentation="code") as served:
        served.offer("say", say)
        async with served.client() as client:
            direct = await client.call_tool("say", {"text": "hi"})
            assert direct.is_error
            assert "tools.say(" in direct.content[0].text
            arguments = {"code": "return await tools.say({'text': 'hi'})", "description": "say hi"}
            result = await client.call_tool("run_code", arguments)
        assert result.structured_content == {"logs": "", "result": {"said": "hi"}}
        inner, outer = served.seen[-2:]
        assert inner.call_id == f"{outer.call_id}:code:1"
        assert inner.agent is outer.agent


async def test_the_description_of_run_code_declares_the_tools_of_the_moment(serve: Any) -> None:
    """An MCP client gets no system prompt of the host's."""
    async with serve(CODE, presentation="both") as served:
        undo = served.offer("say", say)
        async with served.client() as client:
            about = {tool.name: tool.description for tool in (await client.list_tools()).tools}
            assert "async def say(self, args: dict[str, Any] = {}, /) -> dict[str, Any]:" in about["run_code"]
            assert about["say"] == "Tries say"
            undo()
            about = {tool.name: tool.description for tool in (await client.list_tools()).tools}
            assert "async def say" not in about["run_code"]


async def test_a_program_that_fails_is_a_tool_error_with_its_output(serve: Any) -> None:
    """And its traceback."""
    async with serve(CODE, presentation="code") as served, served.client() as client:
        result = await client.call_tool("run_code", {"code": "print('so far')\n1/0", "description": "x"})
    assert result.is_error
    said = "".join(block.text for block in result.content)
    assert "ZeroDivisionError" in said
    assert "so far" in said


async def test_without_code_mode_there_is_nothing_to_present(serve: Any) -> None:
    """The client is not served at all, and whoever serves is told why."""
    async with serve(presentation="code") as served:
        with pytest.raises(HarnessError, match=r"\[host.code\]"):
            await served.server.serve(None, None)


async def test_a_token_has_a_mode_of_its_own_before_that_of_the_server(serve: Any) -> None:
    """The nearest setting counts: token, server, host."""
    async with serve({**CODE, "presentation": "both"}) as served:
        served.offer("say", say)
        clients = Clients(served.ctx, {"ci": ClientConfig(presentation="native")}, "code")
        seen = {}
        for name in ("ci", "other"):
            scope = clients.of(Token(name, frozenset({"list", "call"}), name)).scope
            seen[name] = [schema["name"] for schema in served.ctx.tools.schemas(scope.key)]
    assert seen == {"ci": ["say"], "other": ["run_code"]}


@pytest.mark.parametrize(("own", "server"), [("code", None), (None, "both")])
async def test_a_mode_that_cannot_be_had_stops_the_start(serve: Any, own: Any, server: Any) -> None:
    """Before a client comes."""
    async with serve() as served:
        with pytest.raises(ClientConfigError, match=r"\[host.code\]"):
            check_configs(served.ctx, {"ci": ClientConfig(presentation=own)}, server)
