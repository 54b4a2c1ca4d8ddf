"""``dsh-run mcp``: the protocol on stdout, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dsh_plugin_mcp_server")

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")

GREET = '[[plugin]]\nid = "greet"\nuse = "greet"\n'
NOISY = 'print("imported")\n\n\ndef apply(ctx):\n    print("applied")\n'

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "greet", "arguments": {"name": "Ada"}},
}


def serve(folder: Path, config: str, *messages: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Serve a client that says its messages and leaves."""
    (folder / "dsh.toml").write_text(config)
    text = "".join(f"{json.dumps(message)}\n" for message in messages)
    return subprocess.run(
        [DSH_RUN, "mcp"], cwd=folder, input=text, capture_output=True, text=True, timeout=60, check=False
    )


def answers(served: subprocess.CompletedProcess[str]) -> dict[int, Any]:
    """What the client was answered; every line is a message."""
    return {message["id"]: message.get("result") for message in map(json.loads, served.stdout.splitlines())}


def test_a_client_is_served_by_the_installed_plugin(tmp_path: Path) -> None:
    """The config need not name it; what plugins print goes to stderr."""
    (tmp_path / "noisy.py").write_text(NOISY)
    served = serve(tmp_path, GREET + '[[plugin]]\nid = "noisy"\nuse = "./noisy.py"\n', INITIALIZE, INITIALIZED, CALL)
    assert (served.returncode, served.stderr) == (0, "imported\napplied\n")
    assert answers(served)[2]["content"] == [{"type": "text", "text": "Hello, Ada!"}]


def test_the_configs_own_server_is_used_where_there_is_one(tmp_path: Path) -> None:
    """With its settings."""
    server = '[[plugin]]\nid = "server"\nuse = "mcp-server"\n[plugin.config]\nname = "mine"\n'
    served = serve(tmp_path, GREET + server, INITIALIZE)
    assert answers(served)[1]["serverInfo"]["name"] == "mine"


def test_a_wrong_config_is_told_on_stderr(tmp_path: Path) -> None:
    """Stdout stays empty, exit code 2."""
    served = serve(tmp_path, GREET + "[hots]\n", INITIALIZE)
    assert (served.returncode, served.stdout) == (2, "")
    assert served.stderr.startswith("error: dsh.toml:4: hots: ")


def test_a_signal_ends_the_server(tmp_path: Path) -> None:
    """While it waits for its client."""
    (tmp_path / "dsh.toml").write_text(GREET)
    server = subprocess.Popen(
        [DSH_RUN, "mcp"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(f"{json.dumps(INITIALIZE)}\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 143
    assert err == "error: interrupted by SIGTERM\n"


def test_without_a_client_it_says_what_to_do(tmp_path: Path) -> None:
    """Stdin is closed."""
    (tmp_path / "dsh.toml").write_text(GREET)
    ended = subprocess.run(
        ["sh", "-c", f'"{DSH_RUN}" mcp <&-'], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("error: ")
