"""The record of real processes: signals, kills, disks that are full."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.services.sessions.reading import CallFilter, Reader

pytest.importorskip("dsh_plugin_mcp_server")

DSH_RUN = os.path.join(sysconfig.get_path("scripts"), "dsh-run")
LOG = '[host.log]\npath = "log.db"\n'
SLOW = '''
import os
import trio
from dsh_runtime import tool

inject = ["tools"]


@tool
async def nap() -> str:
    """Sleep for long."""
    os.write(2, b"started\\n")
    await trio.sleep(60)
    return "awake"


@tool
async def echo(text: str) -> str:
    """Say it again."""
    await trio.sleep(0.002)
    return text


def apply(ctx):
    ctx.tools.register(nap)
    ctx.tools.register(echo)
'''
HELLO: dict[str, Any] = {
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config with a log beside it and slow tools."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "dsh.toml").write_text(LOG + '[[plugin]]\nid = "slow"\nuse = "./slow.py"\n')
    return tmp_path


class Server:
    """``dsh-run mcp``, and what it has answered."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.process = subprocess.Popen(
            [DSH_RUN, "mcp"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self.answers: dict[int, Any] = {}
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.say(HELLO)
        self.say({"method": "notifications/initialized"})

    def say(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def call(self, number: int, name: str, **arguments: Any) -> None:
        self.say({"id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}})

    def wait_for(self, answers: int) -> None:
        until = time.monotonic() + 30
        while len(self.answers) < answers and time.monotonic() < until:
            time.sleep(0.005)
        assert len(self.answers) >= answers

    def wait_for_stderr(self, line: str) -> None:
        assert self.process.stderr is not None
        assert self.process.stderr.readline() == line

    def end(self) -> int:
        code = self.process.wait(30)
        self._reading.join(10)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        return code

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            self.answers[message["id"]] = message.get("result")


def call(folder: Path, text: str) -> None:
    """Make one call from a shell."""
    subprocess.run([DSH_RUN, "call", "echo", f"text={text}"], cwd=folder, check=True, capture_output=True, timeout=60)


def outcomes(folder: Path) -> list[tuple[str, str, str | None]]:
    """Name, outcome and code of every call in the log, the oldest first."""
    with Reader(folder / "log.db") as reader:
        calls = reader.calls(CallFilter(limit=100_000))
    return [(call.name, call.outcome, call.code) for call in reversed(calls)]


def results(folder: Path) -> list[Any]:
    """The payloads of all results."""
    with Reader(folder / "log.db") as reader:
        return [event.payload for event in reader.events() if event.type == "tool/result"]


def test_whatever_a_killed_server_has_answered_is_on_record(folder: Path) -> None:
    """What it has not answered is closed as interrupted by whoever opens the log next."""
    server = Server(folder)
    for number in range(1, 400):
        server.call(number, "echo", text=f"call {number}")
    server.wait_for(60)
    server.process.send_signal(signal.SIGKILL)
    assert server.end() == -signal.SIGKILL
    answered = {result["content"][0]["text"] for number, result in server.answers.items() if number}

    recorded = [payload["content"][0]["text"] for payload in results(folder)]
    assert len(recorded) == len(set(recorded))
    assert answered - set(recorded) == set()
    assert "open" in {outcome for _, outcome, _ in outcomes(folder)} or len(answered) == 399

    call(folder, "next")
    after = outcomes(folder)
    assert {outcome for _, outcome, _ in after} <= {"success", "interrupted"}
    assert sum(outcome == "success" for _, outcome, _ in after) == len(recorded) + 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_during_a_call_leaves_a_complete_record(folder: Path, number: signal.Signals) -> None:
    """The call ends as aborted, and its session is closed."""
    process = subprocess.Popen(
        [DSH_RUN, "call", "nap"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None and process.stderr.readline() == "started\n"
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert outcomes(folder) == [("nap", "failure", "ABORTED")]
    assert endings(folder) == {"closed"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_while_serving_leaves_a_complete_record(folder: Path, number: signal.Signals) -> None:
    """Every call has a result, every session an end."""
    server = Server(folder)
    server.call(1, "echo", text="hi")
    server.wait_for(2)
    server.call(2, "nap")
    server.wait_for_stderr("started\n")
    server.process.send_signal(number)
    assert server.end() == 128 + number
    assert outcomes(folder) == [("echo", "success", None), ("nap", "failure", "ABORTED")]
    assert endings(folder) == {"closed"}
    with Reader(folder / "log.db") as reader:
        assert [(session.front_door, session.calls) for session in reader.sessions()] == [("mcp", 2), ("host", 0)]


def test_calls_are_followed_while_another_process_makes_them(folder: Path) -> None:
    """First the newest that have ended, then each that ends, if the filter lets it through."""
    call(folder, "first")
    following = subprocess.Popen(
        [DSH_RUN, "log", "calls", "--follow", "--outcome", "success", "--output", "json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["name"] == "echo"
        subprocess.run([DSH_RUN, "call", "echo"], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        call(folder, "second")
        shown = json.loads(following.stdout.readline())
        assert (shown["name"], shown["outcome"]) == ("echo", "success")
        assert outcomes(folder)[1:] == [("echo", "failure", "INVALID_ARGS"), ("echo", "success", None)]
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=30)
    assert following.returncode == 130


def test_the_log_itself_is_followed_by_its_calls(folder: Path) -> None:
    """Without having to say that calls are meant."""
    for text in ("first", "second"):
        call(folder, text)
    words = [DSH_RUN, "log", "--follow", "--limit", "1", "--output", "json"]
    following = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert following.stdout is not None
        ids = [json.loads(following.stdout.readline())["call_id"]]
        call(folder, "third")
        ids.append(json.loads(following.stdout.readline())["call_id"])
    finally:
        following.send_signal(signal.SIGINT)
        following.communicate(timeout=30)
    with Reader(folder / "log.db") as reader:
        assert ids == [made.call_id for made in reversed(reader.calls(CallFilter(limit=2)))]


def test_a_second_signal_leaves_at_once_and_the_next_process_tidies_up(folder: Path) -> None:
    """The call of a process that did not come to rest is closed as interrupted."""
    (folder / "stubborn.py").write_text(STUBBORN)
    with (folder / "dsh.toml").open("a") as file:
        file.write('[[plugin]]\nid = "stubborn"\nuse = "./stubborn.py"\n')
    process = subprocess.Popen(
        [DSH_RUN, "call", "stubborn"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None and process.stderr.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    assert process.stderr.readline() == "asked to stop\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 143
    call(folder, "next")
    assert outcomes(folder) == [("stubborn", "interrupted", "INTERRUPTED"), ("echo", "success", None)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_second_signal_ends_a_server_at_once(folder: Path, number: signal.Signals) -> None:
    """The first one waits for a call that does not come to rest; what it left open is closed by the next process."""
    (folder / "stubborn.py").write_text(STUBBORN)
    with (folder / "dsh.toml").open("a") as file:
        file.write('[[plugin]]\nid = "stubborn"\nuse = "./stubborn.py"\n')
    server = Server(folder)
    server.call(1, "echo", text="hi")
    server.wait_for(2)
    server.call(2, "stubborn")
    server.wait_for_stderr("started\n")
    server.process.send_signal(number)
    server.wait_for_stderr("asked to stop\n")
    assert server.process.poll() is None
    server.process.send_signal(number)
    assert server.end() == 128 + number
    call(folder, "next")
    ended = [("echo", "success", None), ("stubborn", "interrupted", "INTERRUPTED"), ("echo", "success", None)]
    assert outcomes(folder) == ended


def test_a_server_that_is_told_to_stop_waits_for_calls_that_come_to_rest(folder: Path) -> None:
    """Drain, then stop: what a body does when it is stopped, it does to its end."""
    (folder / "stubborn.py").write_text(STUBBORN.replace("trio.sleep(60)\n\n\ndef", "trio.sleep(0.3)\n\n\ndef"))
    with (folder / "dsh.toml").open("a") as file:
        file.write('[[plugin]]\nid = "stubborn"\nuse = "./stubborn.py"\n')
    server = Server(folder)
    server.call(1, "stubborn")
    server.wait_for_stderr("started\n")
    server.process.send_signal(signal.SIGTERM)
    server.wait_for_stderr("asked to stop\n")
    assert server.end() == 143
    assert outcomes(folder) == [("stubborn", "failure", "ABORTED")]
    assert endings(folder) == {"closed"}


STUBBORN = '''
import os
import trio
from dsh_runtime import tool

inject = ["tools"]


@tool
async def stubborn() -> str:
    """Do not stop."""
    os.write(2, b"started\\n")
    try:
        await trio.sleep(60)
    finally:
        os.write(2, b"asked to stop\\n")
        with trio.CancelScope(shield=True):
            await trio.sleep(60)


def apply(ctx):
    ctx.tools.register(stubborn)
'''


def test_a_server_whose_disk_is_full_refuses_calls(folder: Path) -> None:
    """No answer without a record."""

    def bound() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    server = Server(folder, preexec_fn=bound)
    for number in range(1, 30):
        server.call(number, "echo", text="x" * 20_000)
    server.wait_for(30)
    assert server.process.stdin is not None
    server.process.stdin.close()
    server.end()
    answered = [result for number, result in server.answers.items() if number]
    refused = [result["content"][0]["text"] for result in answered if result.get("isError")]
    assert refused and all("session log" in text for text in refused)
    recorded = [payload for payload in results(folder) if payload["outcome"] == "success"]
    assert len(answered) - len(refused) == len(recorded)


def test_a_log_that_cannot_be_written_is_one_line_and_exit_code_2(folder: Path) -> None:
    """The body does not run."""
    (folder / "log.db").mkdir()
    ended = subprocess.run(
        [DSH_RUN, "call", "echo", "text=hi"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: dsh.toml:2: host.log.path: session log ")
    assert ended.stderr.count("\n") == 1


def make_newer(log: Path) -> None:
    with contextlib.closing(sqlite3.connect(log)) as db:
        db.execute("PRAGMA user_version = 1000")


def make_corrupt(log: Path) -> None:
    pages = bytearray(log.read_bytes())
    pages[100:4096] = b"\xff" * 3996
    log.write_bytes(pages)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (make_newer, "newer"),
        (make_corrupt, "session log "),
        (lambda log: log.write_bytes(b"this is no log" * 1000), "session log "),
    ],
    ids=["newer", "corrupt", "something else"],
)
@pytest.mark.parametrize("words", [("call", "echo", "text=hi"), ("mcp",)], ids=lambda words: words[0])
def test_a_log_that_cannot_be_gone_on_with_is_refused_and_left_as_it_is(
    folder: Path, change: Callable[[Path], object], told: str, words: tuple[str, ...]
) -> None:
    """One line and exit code 2: no call runs without a record, and nothing is written over."""
    call(folder, "before")
    change(folder / "log.db")
    before = (folder / "log.db").read_bytes()
    ended = subprocess.run(
        [DSH_RUN, *words], cwd=folder, input="", capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith("error: dsh.toml:2: host.log.path: ")
    assert told in ended.stderr
    assert (folder / "log.db").read_bytes() == before
    assert [file.name for file in folder.glob("log.db-wal") if file.stat().st_size] == []


def endings(folder: Path) -> set[str | None]:
    """How the sessions ended."""
    with Reader(folder / "log.db") as reader:
        return {session.ending for session in reader.sessions()}
