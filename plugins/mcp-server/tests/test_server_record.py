"""What the host's log says of who the clients are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from dsh_plugin_mcp_server._record import label_of
from http_kit import serving
from mcp_types import ClientCapabilities, Implementation, InitializeRequestParams

from dsh_runtime.services.sessions.reading import Reader

Serve = Callable[..., AbstractAsyncContextManager[Any]]


def sessions(path: Path) -> list[tuple[str, str, int, str | None]]:
    """Label, front door, number of calls and ending of every session that a client had."""
    with Reader(path) as reader:
        found = [(s.label, s.front_door, s.calls, s.ending) for s in reader.sessions()]
    return [session for session in found if session[1] != "host"]


async def echo(args: Any, exec: Any) -> Any:
    return args


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_session_has_the_name_that_its_client_gives(serve: Serve, tmp_path: Path, mode: str) -> None:
    """Before the first call is in it; in the protocol of the handshake and in that of 2026."""
    path = tmp_path / "log.db"
    info = Implementation(name="Desk Agent", version="2.1")
    async with serve({"log": {"path": str(path)}}) as served:
        served.offer("echo", echo)
        async with served.client(mode, client_info=info) as client:
            await client.call_tool("echo", {})
            await client.call_tool("echo", {})
    assert sessions(path) == [("Desk Agent 2.1", "mcp", 2, "closed")]


async def test_a_session_over_http_has_the_name_of_its_token_in_front(tmp_path: Path) -> None:
    """What a client says of itself is anybody's word; the token is not."""
    path = tmp_path / "log.db"
    info = Implementation(name="admin", version="1")
    async with (
        serving(tmp_path, ("ci",), log={"path": str(path)}) as (served, (token,)),
        served.client(token, client_info=info) as client,
    ):
        await client.call_tool("echo", {})
    assert sessions(path) == [("ci: admin 1", "mcp", 1, "closed")]


async def test_a_client_that_says_nothing_has_no_session(serve: Serve, tmp_path: Path) -> None:
    """There is nothing that a record could be about."""
    path = tmp_path / "log.db"
    async with serve({"log": {"path": str(path)}}) as served, served.link():
        pass
    assert sessions(path) == []


@pytest.mark.parametrize(
    ("name", "version", "label"),
    [
        ("Agent", "1", "Agent 1"),
        ("Agent", "", "Agent"),
        (" \n ", "\t", "MCP client"),
        ("two\nlines", "1\r2", "two lines 1 2"),
        ("\x1b[2Jroot\u202e", "1", "\\x1b[2Jroot\\u202e 1"),
        ("x" * 1_000_000, "y" * 1_000_000, f"{'x' * 80} {'y' * 80}"),
        ("\u202e" * 1_000, "1", ("\\u202e" * 14)[:80] + " 1"),
    ],
    ids=["both", "no version", "blank", "lines", "steers", "long", "long when written out"],
)
def test_a_name_is_one_bounded_line_that_steers_nothing(name: str, version: str, label: str) -> None:
    """It comes from a stranger."""
    info = Implementation(name=name, version=version)
    assert (
        label_of(InitializeRequestParams(protocolVersion="", capabilities=ClientCapabilities(), clientInfo=info), None)
        == label
    )


def test_a_client_without_a_name_is_an_mcp_client() -> None:
    assert label_of(None, None) == "MCP client"
    assert label_of(None, "ci") == "ci: MCP client"
