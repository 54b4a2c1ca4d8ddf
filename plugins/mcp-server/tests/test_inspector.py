"""The MCP inspector's command line, from npm, as a client that is not ours."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "@modelcontextprotocol/inspector"


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inspector's program, installed into a directory of its own."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("the MCP inspector needs Node.js and npm, and this machine lacks them")
    directory = tmp_path_factory.mktemp("inspector")
    install = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", PACKAGE]
    done = subprocess.run(install, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm could not install {PACKAGE}: {done.stderr.strip()[-300:]}")
    return directory / "node_modules" / ".bin" / "mcp-inspector"


def inspect(inspector: Path, server: list[str], *words: str) -> Any:
    """What the inspector prints for one method.

    It takes options of the server's for its own, so the server finds its config where it starts.
    """
    program, option, config, *arguments = server
    assert option == "--config"
    line = [str(inspector), "--cli", program, *arguments, "--method", *words]
    cwd = Path(config).parent
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_the_inspector_lists_the_tools(inspector: Path, command: tuple[list[str], Path]) -> None:
    """With their schemas."""
    tools = {tool["name"]: tool for tool in inspect(inspector, command[0], "tools/list")["tools"]}
    assert tools["echo"]["inputSchema"]["properties"] == {"text": {"type": "string", "default": None}}
    assert tools["echo"]["outputSchema"] == {"type": "object"}


def test_the_inspector_calls_a_tool(inspector: Path, command: tuple[list[str], Path]) -> None:
    """And gets content and structured content."""
    words = ("tools/call", "--tool-name", "echo", "--tool-arg", "text=hello")
    result = inspect(inspector, command[0], *words)
    assert result["structuredContent"] == {"text": "hello"}
    assert result["isError"] is False


def test_the_inspector_gets_a_failure_as_a_tool_error(inspector: Path, command: tuple[list[str], Path]) -> None:
    """Not as an error of the protocol."""
    result = inspect(inspector, command[0], "tools/call", "--tool-name", "fail")
    assert result == {"content": [{"type": "text", "text": "Error: boom"}], "isError": True}


@pytest.fixture
def over_http(command: tuple[list[str], Path], tmp_path: Path) -> Iterator[str]:
    """The URL of the same host over HTTP. It needs no token: the inspector's command loses headers on their way."""
    config = tmp_path / "http.toml"
    table = "[plugin.config.http]\nport = 0\n"
    config.write_text(f"{Path(command[0][2]).read_text()}{table}")
    line = [command[0][0], "--config", str(config), "mcp", "--http"]
    with subprocess.Popen(line, cwd=Path(command[0][2]).parent, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            yield said.split()[-1]
        finally:
            process.terminate()
            process.stderr.read()


def test_the_inspector_is_served_over_http(inspector: Path, over_http: str) -> None:
    words = ["--transport", "http", "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"]
    line = [str(inspector), "--cli", over_http, *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["structuredContent"] == {"text": "hello"}
