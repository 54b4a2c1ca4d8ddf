"""A running ``dsh-run mcp`` takes up what changes: by itself with ``reload = true``, and on SIGHUP."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dsh_plugin_mcp_server")

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")
PATIENCE = 20.0

SAYS = '''
from dsh_runtime import tool

inject = ["tools"]


@tool
def say() -> str:
    """Say."""
    return {word!r}


def apply(ctx):
    ctx.tools.register(say)
'''
PARAMETERS = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Client:
    """A client of a server of its own."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [DSH_RUN, "mcp"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._number = 0
        self._ask("initialize", PARAMETERS)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def say(self) -> str:
        """What the tool says by now."""
        return str(self._ask("tools/call", {"name": "say", "arguments": {}})["content"][0]["text"])

    def until_it_says(self, word: str) -> None:
        """Wait for a new version."""
        end = time.monotonic() + PATIENCE
        while (said := self.say()) != word:
            assert time.monotonic() < end, said
            time.sleep(0.05)

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self._number:
                return message["result"]

    def _write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(message)}\n")
        self.process.stdin.flush()

    def leave(self) -> tuple[int, str]:
        """How the server ended, and what it said to whoever runs it."""
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config with one plugin in a file."""
    (tmp_path / "p.py").write_text(SAYS.format(word="one"))
    (tmp_path / "dsh.toml").write_text('[[plugin]]\nid = "p"\nuse = "./p.py"\n')
    return tmp_path


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    """Clients that a test makes; no server outlives it."""
    made: list[Client] = []
    yield made
    for client in made:
        client.process.kill()
        client.process.communicate()


def test_a_running_server_takes_up_a_save(folder: Path, clients: list[Client]) -> None:
    """Clients stay connected; a version that cannot be loaded is told, and the old one answers."""
    (folder / "dsh.toml").write_text("[host]\nreload = true\n" + (folder / "dsh.toml").read_text())
    clients.append(client := Client(folder))
    assert client.say() == "one"
    (folder / "p.py").write_text(SAYS.format(word="two"))
    client.until_it_says("two")
    (folder / "p.py").write_text("def apply(ctx:\n")
    assert client.process.stderr is not None
    told = client.process.stderr.readline()
    assert told.startswith("warning: kept p as it was: ")
    assert f"{folder}/p.py:1" in told
    assert client.say() == "two"
    (folder / "p.py").write_text(SAYS.format(word="six"))
    client.until_it_says("six")
    assert client.leave() == (0, "")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no such signal here")
def test_a_hangup_has_a_running_server_reload(folder: Path, clients: list[Client]) -> None:
    """Sources and config, though nothing is watched; and the server goes on."""
    clients.append(client := Client(folder))
    (folder / "p.py").write_text(SAYS.format(word="two"))
    time.sleep(0.3)
    assert client.say() == "one"
    client.process.send_signal(signal.SIGHUP)
    client.until_it_says("two")
    (folder / "q.py").write_text(SAYS.format(word="six"))
    (folder / "dsh.toml").write_text('[[plugin]]\nid = "q"\nuse = "./q.py"\n')
    client.process.send_signal(signal.SIGHUP)
    client.until_it_says("six")
    assert client.leave() == (0, "")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no such signal here")
def test_a_terminal_that_is_closed_ends_the_server(folder: Path) -> None:
    """That is what the signal means there."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execv(DSH_RUN, [DSH_RUN, "mcp"])
    os.write(terminal, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMETERS}).encode())
    os.write(terminal, b"\n")
    said = b""
    while b'"result"' not in said:
        said += os.read(terminal, 4096)
    os.close(terminal)
    end = time.monotonic() + PATIENCE
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the server outlives its terminal")
        time.sleep(0.05)
