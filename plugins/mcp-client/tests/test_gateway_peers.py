"""Servers and clients that nobody here wrote, before and behind a gateway that is a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import trio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

PACKAGES = ["everything", "filesystem"]
DSH_RUN = Path(sys.executable).with_name("dsh-run")
PATIENCE = 60


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the reference servers' programs, from npm."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("the reference servers need Node.js and npm, and this machine lacks them")
    folder = tmp_path_factory.mktemp("reference")
    names = [f"@modelcontextprotocol/server-{name}" for name in PACKAGES]
    install = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *names]
    done = subprocess.run(install, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm could not install the reference servers: {done.stderr.strip()[-300:]}")
    return folder / "node_modules" / ".bin"


def config(folder: Path, command: list[str], more: str = "", row: str = "") -> Path:
    """The config of a gateway in front of one server."""
    path = folder / "dsh.toml"
    path.write_text(
        textwrap.dedent(
            f"""
            [host.log]
            path = "log.db"

            {textwrap.indent(textwrap.dedent(more), " " * 12).strip()}

            [[plugin]]
            id = "far"
            use = "mcp-client"

            [plugin.config]
            command = {json.dumps(command)}
            env = {{ PATH = {json.dumps(os.environ["PATH"])} }}
            fingerprints = {json.dumps(str(folder / "fingerprints.json"))}
            {row}
            """
        )
    )
    return path


@asynccontextmanager
async def through(path: Path, **more: Any) -> AsyncIterator[Client]:
    """A client of the gateway."""
    parameters = StdioServerParameters(command=str(DSH_RUN), args=["-c", str(path), "mcp"], cwd=path.parent)
    with trio.fail_after(PATIENCE):
        async with Client(parameters, **more) as client:
            yield client


@asynccontextmanager
async def direct(command: list[str]) -> AsyncIterator[Client]:
    """A client of the server itself."""
    environment = {"PATH": os.environ["PATH"]}
    with trio.fail_after(PATIENCE):
        async with Client(StdioServerParameters(command=command[0], args=command[1:], env=environment)) as client:
            yield client


async def outcome(client: Client, name: str, arguments: Any) -> Any:
    """A result as it reads to a client."""
    result = await client.call_tool(name, arguments)
    return {
        "content": [block.model_dump(by_alias=True, exclude_none=True) for block in result.content],
        "structured": result.structured_content,
        "error": result.is_error,
    }


def shape(value: Any) -> Any:
    """The types in a value, where the values differ by nature."""
    if isinstance(value, dict):
        return {key: shape(member) for key, member in value.items()}
    return [shape(member) for member in value] if isinstance(value, list) else type(value).__name__


EVERYTHING: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"message": "hällo \N{MAN}"}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-annotated-message", {"messageType": "success"}),
    ("get-env", {}),
    ("get-resource-links", {"count": 4}),
    ("get-resource-reference", {"resourceType": "Blob", "resourceId": 2}),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ("get-structured-content", {"location": "Chicago"}),
    ("get-sum", {"a": 1, "b": 2.5}),
    ("get-tiny-image", {}),
    ("gzip-file-as-resource", {"name": "x.gz", "data": "data:text/plain,hello"}),
    ("toggle-simulated-logging", {}),
    ("toggle-subscriber-updates", {}),
    ("trigger-long-running-operation", {"duration": 0.1, "steps": 2}),
    ("simulate-research-query", {"topic": "x"}),
]
#: By nature: the environment is the server's own, names of sessions and times are new each time.
DIFFERING = {
    *("get-env", "gzip-file-as-resource", "get-resource-reference"),
    *("toggle-simulated-logging", "toggle-subscriber-updates"),
}


async def test_every_tool_of_the_everything_server_answers_as_it_does_directly(reference: Path, tmp_path: Path) -> None:
    command = [str(reference / "mcp-server-everything")]
    async with direct(command) as near, through(config(tmp_path, command)) as far:
        listed = {tool.name: tool for tool in (await far.list_tools()).tools}
        for tool in (await near.list_tools()).tools:
            assert listed[tool.name].input_schema == tool.input_schema
            assert listed[tool.name].description == tool.description
        assert set(listed) == {name for name, _ in EVERYTHING}
        for name, arguments in EVERYTHING:
            expected, found = await outcome(near, name, arguments), await outcome(far, name, arguments)
            if name in DIFFERING:
                assert shape(found) == shape(expected), name
            else:
                assert found == expected, name


def filesystem_calls(root: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every tool of the filesystem server, and what goes wrong."""
    file = str(root / "a.txt")
    edits = [{"oldText": "one", "newText": "two"}]
    return [
        ("write_file", {"path": file, "content": "one\nline\n"}),
        ("read_file", {"path": file}),
        ("read_text_file", {"path": file, "head": 1}),
        ("read_media_file", {"path": str(root / "p.png")}),
        ("read_multiple_files", {"paths": [file, str(root / "none")]}),
        ("edit_file", {"path": file, "edits": edits, "dryRun": True}),
        ("edit_file", {"path": file, "edits": edits}),
        ("create_directory", {"path": str(root / "folder")}),
        ("list_directory", {"path": str(root)}),
        ("list_directory_with_sizes", {"path": str(root)}),
        ("directory_tree", {"path": str(root)}),
        ("move_file", {"source": file, "destination": str(root / "b.txt")}),
        ("search_files", {"path": str(root), "pattern": "*.txt"}),
        ("get_file_info", {"path": str(root / "b.txt")}),
        ("list_allowed_directories", {}),
        ("read_file", {"path": "/etc/passwd"}),
        ("read_file", {"path": str(root / "gone")}),
    ]


async def test_every_tool_of_the_filesystem_server_answers_as_it_does_directly(reference: Path, tmp_path: Path) -> None:
    program = str(reference / "mcp-server-filesystem")
    roots = [tmp_path / "near", tmp_path / "away"]
    for root in roots:
        root.mkdir()
        (root / "p.png").write_bytes(b"\x89PNG\r\n")
    path = config(tmp_path, [program, str(roots[1])])
    async with direct([program, str(roots[0])]) as near, through(path) as far:
        names = {tool.name for tool in (await near.list_tools()).tools}
        assert {tool.name for tool in (await far.list_tools()).tools} == names
        assert {name for name, _ in filesystem_calls(roots[0])} == names
        for (name, given), (_, same) in zip(*map(filesystem_calls, roots), strict=True):
            expected, found = await outcome(near, name, given), await outcome(far, name, same)
            if name == "get_file_info":
                assert shape(found) == shape(expected)
            else:
                assert json.dumps(found).replace("/away", "/near") == json.dumps(expected), name


GATES = """
    [[plugin]]
    id = "gate"
    use = "permission-gate"
    [plugin.config]
    default = "allow"
    [[plugin.config.rules]]
    action = "deny"
    tools = ["get-env"]
    reason = "the environment stays inside"
    [[plugin.config.rules]]
    action = "ask"
    tools = ["get-sum"]

    [[plugin]]
    id = "timeout"
    use = "timeout"
    [plugin.config]
    overrides = { "trigger-*" = 1.0 }
"""


async def test_one_session_with_everything_that_policy_does(reference: Path, tmp_path: Path) -> None:
    """Denied, asked and answered, asked and refused, progressing, timed out, cancelled; and all of it on record."""
    path = config(tmp_path, [str(reference / "mcp-server-everything")], GATES)
    answers: list[Any] = []
    steps: list[Any] = []

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        return answers.pop(0)

    async def step(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total))

    async with through(path, elicitation_callback=answer) as client:
        denied = await outcome(client, "get-env", {})
        assert "the environment stays inside" in denied["content"][0]["text"]

        answers.append(types.ElicitResult(action="accept", content={"decision": "allow once"}))
        asked = await outcome(client, "get-sum", {"a": 1, "b": 2})
        assert not asked["error"], asked
        answers.append(types.ElicitResult(action="decline"))
        refused = await outcome(client, "get-sum", {"a": 1, "b": 2})
        assert refused["error"]

        slow = {"duration": 0.4, "steps": 2}
        await client.call_tool("trigger-long-running-operation", slow, progress_callback=step)
        assert steps == [(1, 2), (2, 2)]

        timed_out = await outcome(client, "trigger-long-running-operation", {"duration": 30, "steps": 30})
        assert "deadline" in timed_out["content"][0]["text"]

        with trio.move_on_after(0.3):
            await client.call_tool("trigger-long-running-operation", {"duration": 20, "steps": 20})
        assert not (await outcome(client, "echo", {"message": "still here"}))["error"]

    command = [str(DSH_RUN), "-c", str(path), "log", "export"]
    told = await trio.run_process(command, cwd=tmp_path, capture_stdout=True)
    for code in ("DENIED", "APPROVAL_REJECTED", "TOOL_TIMEOUT", "ABORTED"):
        assert code.encode() in told.stdout


# fastmcp, on both ends

FAST_SERVER = '''
from fastmcp import Context, FastMCP

server = FastMCP("fast")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
async def count(to: int, ctx: Context) -> str:
    """Count, and report progress."""
    for n in range(to):
        await ctx.report_progress(n + 1, to)
    return "done"


@server.tool
def fail() -> str:
    """Fail."""
    raise ValueError("no such thing")


server.run(show_banner=False)
'''


async def test_a_server_of_fastmcp_answers_as_it_does_directly(tmp_path: Path) -> None:
    pytest.importorskip("fastmcp", reason="fastmcp is not installed")
    (tmp_path / "fast.py").write_text(FAST_SERVER)
    command = [sys.executable, str(tmp_path / "fast.py")]
    calls: list[tuple[str, dict[str, Any]]] = [("add", {"a": 1, "b": 2}), ("count", {"to": 3}), ("fail", {})]
    async with direct(command) as near, through(config(tmp_path, command)) as far:
        assert [tool.input_schema for tool in (await far.list_tools()).tools] == [
            tool.input_schema for tool in (await near.list_tools()).tools
        ]
        for name, arguments in calls:
            assert await outcome(far, name, arguments) == await outcome(near, name, arguments)


FAST_CLIENT = """
import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main():
    async with Client(StdioTransport(sys.argv[1], sys.argv[2:])) as client:
        names = sorted(tool.name for tool in await client.list_tools())
        result = await client.call_tool("add", {"a": 1, "b": 2})
        failed = await client.call_tool("fail", {}, raise_on_error=False)
        print(json.dumps([names, result.data, failed.is_error]))


asyncio.run(main())
"""


def test_a_client_of_fastmcp_is_served(tmp_path: Path) -> None:
    pytest.importorskip("fastmcp", reason="fastmcp is not installed")
    (tmp_path / "fast.py").write_text(FAST_SERVER)
    (tmp_path / "client.py").write_text(FAST_CLIENT)
    path = config(tmp_path, [sys.executable, str(tmp_path / "fast.py")])
    done = subprocess.run(
        [sys.executable, tmp_path / "client.py", DSH_RUN, "-c", path, "mcp"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [["add", "count", "fail"], 3, True]


FAST_HTTP_CLIENT = """
import asyncio
import json
import sys

from fastmcp import Client


async def main():
    async with Client(sys.argv[1]) as client:
        names = sorted(tool.name for tool in await client.list_tools())
        result = await client.call_tool("add", {"a": 1, "b": 2})
        failed = await client.call_tool("fail", {}, raise_on_error=False)
        heard = []

        async def hear(progress, total, message):
            heard.append(progress)

        await client.call_tool("count", {"to": 3}, progress_handler=hear)
        print(json.dumps([names, result.data, failed.is_error, heard]))


asyncio.run(main())
"""


@contextmanager
def started(command: list[Any], folder: Path, where: str) -> Iterator[str]:
    """A program that says where it listens, in the last word of its first line with ``where`` in it."""
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(line.split()[-1] for line in process.stderr if where in line)
        finally:
            process.terminate()
            process.stderr.read()


def test_fastmcp_is_served_and_serves_over_http_on_both_sides(tmp_path: Path) -> None:
    pytest.importorskip("fastmcp", reason="fastmcp is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run = f'server.run(transport="http", host="127.0.0.1", port={port}, show_banner=False)'
    (tmp_path / "fast.py").write_text(FAST_SERVER.replace("server.run(show_banner=False)", run))
    (tmp_path / "client.py").write_text(FAST_HTTP_CLIENT)
    fingerprints = json.dumps(str(tmp_path / "f.json"))
    (tmp_path / "dsh.toml").write_text(
        f'[host.log]\nenabled = false\n[[plugin]]\nid = "far"\nuse = "mcp-client"\n[plugin.config]\n'
        f'url = "http://127.0.0.1:{port}/mcp"\nfingerprints = {fingerprints}\n'
        '[[plugin]]\nid = "door"\nuse = "mcp-server"\n[plugin.config.http]\nport = 0\n'
    )
    fast, gate = [sys.executable, "fast.py"], [DSH_RUN, "-c", "dsh.toml", "mcp", "--http"]
    with started(fast, tmp_path, "running on"), started(gate, tmp_path, "http://") as url:
        program = [sys.executable, tmp_path / "client.py", url]
        done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [["add", "count", "fail"], 3, True, [1, 2, 3]]
