"""A server at the other end of streamable HTTP: this very host's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dsh_plugin_mcp_server
import pytest
import trio
from gateway_kit import PATIENCE, Gateway, code

from dsh_runtime import HostError, ToolDefinition, ToolOutput, open_host

#: Tools that want arguments in headers: one as the protocol has it, one that no client may send.
MIRRORING: dict[str, Any] = {
    "mirrored": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}},
    },
    "wrong": {"type": "object", "properties": {"region": {"type": "object", "x-mcp-header": "Region"}}},
}


class Remote:
    """A plugin with a tool, behind the endpoint."""

    name = "remote"
    inject = ("tools", "mcp_server")

    def __init__(self) -> None:
        self.url = ""
        self.listening = trio.Event()
        self.begun = trio.Event()
        self.codes: list[str | None] = []

    def apply(self, ctx: Any) -> None:
        ctx.on("tools/result", lambda result: self.codes.append(code(result)))
        for name, execute in {"echo": self.echo, "wait": self.wait}.items():
            ctx.tools.register(ToolDefinition(name, "…", {"type": "object"}, ToolOutput(schema={}), execute))
        for name, schema in MIRRORING.items():
            ctx.tools.register(ToolDefinition(name, "…", schema, ToolOutput(schema={}), self.echo))
        ctx.start_soon(ctx.mcp_server.serve_http, self.listens)

    def listens(self, url: str) -> None:
        self.url = url
        self.listening.set()

    async def echo(self, args: Any, exec: Any) -> Any:
        return args

    async def wait(self, args: Any, exec: Any) -> Any:
        self.begun.set()
        await trio.sleep_forever()


def rows(url: str, folder: Path, **config: Any) -> dict[str, Any]:
    """The config of the host in front."""
    server = {"url": url, "fingerprints": str(folder / "f.json"), **config}
    return {"host": {"log": {"enabled": False}}, "plugin": [{"id": "far", "use": "mcp-client", "config": server}]}


BEHIND = {"host": {"log": {"enabled": False}}, "plugin": []}


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_tools_behind_an_endpoint_are_called_and_cancelled(tmp_path: Path, protocol: str) -> None:
    remote = Remote()
    server = (dsh_plugin_mcp_server, {"http": {"port": 0}})
    async with open_host(BEHIND, plugins=[server, remote]):
        with trio.fail_after(PATIENCE):
            await remote.listening.wait()
        async with open_host(rows(remote.url, tmp_path, protocol=protocol)) as host:
            gate = Gateway(host, "far", tmp_path / "none")
            assert (await gate.call("echo", a=1)).value == {"a": 1}
            async with trio.open_nursery() as nursery:
                nursery.start_soon(gate.call, "wait")
                with trio.fail_after(PATIENCE):
                    await remote.begun.wait()
                nursery.cancel_scope.cancel()
            await gate.until(lambda: "ABORTED" in remote.codes)


@pytest.mark.parametrize("region", ["north", "nörd\r\nx: y", None])
async def test_arguments_that_a_schema_wants_in_headers_are_sent_there_too(tmp_path: Path, region: Any) -> None:
    remote = Remote()
    async with open_host(BEHIND, plugins=[(dsh_plugin_mcp_server, {"http": {"port": 0}}), remote]):
        with trio.fail_after(PATIENCE):
            await remote.listening.wait()
        async with open_host(rows(remote.url, tmp_path, validation="off")) as host:
            gate = Gateway(host, "far", tmp_path / "none")
            assert "wrong" not in gate.names()
            given = {"n": 1} if region is None else {"region": region}
            assert (await gate.call("mirrored", **given)).value == given


async def test_an_endpoint_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="'far'"), trio.fail_after(PATIENCE):
        async with open_host(rows("http://127.0.0.1:9/mcp", tmp_path)):
            pass


async def test_headers_of_the_config_are_sent(tmp_path: Path) -> None:
    from dsh_plugin_mcp_server._http.tokens import add_token

    secret = add_token(tmp_path / "tokens.toml", "front", ["list", "call"])
    remote = Remote()
    server = (dsh_plugin_mcp_server, {"http": {"port": 0, "tokens": str(tmp_path / "tokens.toml")}})
    async with open_host(BEHIND, plugins=[server, remote]):
        with trio.fail_after(PATIENCE):
            await remote.listening.wait()
        with pytest.raises(HostError):
            async with open_host(rows(remote.url, tmp_path)):
                pass
        headers = {"Authorization": f"Bearer {secret}"}
        async with open_host(rows(remote.url, tmp_path, headers=headers)) as host:
            assert (await Gateway(host, "far", tmp_path / "none").call("echo", a=1)).value == {"a": 1}
