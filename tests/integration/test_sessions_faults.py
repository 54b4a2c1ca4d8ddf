"""Faults from outside: several processes, signals, files that cannot be written, disks that are full."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dsh_runtime.services.sessions import LogError
from dsh_runtime.services.sessions.log import end_owner, open_log
from dsh_runtime.services.sessions.reading import CallFilter, Reader

# A host in small: journals calls until a signal asks it to stop, then lets those under way come to their end.
HOST = """
import os, signal, sys
import trio
from dsh_hookspecs import AbortController, ExecutionToken, ToolExecutionSuccess
from dsh_runtime.core.kernel import open_kernel
from dsh_runtime.services.sessions import LogError, Sessions, SessionsConfig
from dsh_runtime.tools.execution import make_execution

PATH, NAME, BYTES, MODE = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
stopping = False


def say(text):
    os.write(1, (text + "\\n").encode())


async def call(sessions, label):
    source = AbortController().signal
    run = make_execution(label, "echo", {}, source, None, None, None, ExecutionToken())
    await sessions.called(run)
    say("called")
    while MODE == "stuck" or (MODE == "hold" and not stopping):
        await trio.sleep(0.001)
    await sessions.finished(run, ToolExecutionSuccess(None, [{"type": "text", "text": "x" * BYTES}]), None)
    say(run.call_id)


async def calls(sessions, caller):
    number = 0
    while not stopping:
        await call(sessions, f"{NAME}-{caller}-{number}")
        number += 1


async def stop_on_signal():
    global stopping
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            if stopping:
                os._exit(130)
            stopping = True
            say("stopping")


async def main():
    async with open_kernel() as ctx:
        await ctx.plugin(Sessions(SessionsConfig(path=PATH))).wait()
        say("open")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_on_signal)
            async with trio.open_nursery() as callers:
                for caller in range(3):
                    callers.start_soon(calls, ctx.get("sessions"), caller)
            nursery.cancel_scope.cancel()


try:
    trio.run(main)
except* LogError as group:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    say(f"LogError: {group}")
"""


@contextmanager
def host(
    path: Path,
    name: str = "h",
    *,
    size: int = 10,
    mode: str = "run",
    before: Callable[[], object] | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """A host in a process of its own."""
    command = [sys.executable, "-c", HOST, str(path), name, str(size), mode]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=before)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def read_until(process: subprocess.Popen[str], start: str) -> str:
    """The first line that begins so."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(start):
            return line.rstrip("\n")
    raise AssertionError(f"the host ended without a line that begins with {start!r}")


def outcomes(path: Path) -> dict[str, str]:
    """What became of each call."""
    with Reader(path) as reader:
        return {call.call_id: call.outcome for call in reader.calls(CallFilter(limit=1_000_000))}


def open_and_close(path: Path) -> None:
    """What a next host does to the log."""
    log = open_log(path, "normal", 0)
    end_owner(log.db, log.owner, 0)
    log.db.close()
    log.lock.release()


def answer_for_nobody(ask: Callable[[], object]) -> str:
    """What a user hears who may not write the log. (For root no file is read-only.)"""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setuid(65_534)
            os.write(writing, str(ask()).encode())
        except LogError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as text:
        return text.read()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "sessions.db"


def test_the_calls_of_a_living_process_are_left_alone(path: Path) -> None:
    """Opening the log beside another host closes none of its calls."""
    with host(path, mode="hold") as other:
        read_until(other, "called")
        open_and_close(path)
        assert outcomes(path)["h-0-0"] == "open"


def test_the_calls_of_a_dead_process_are_closed(path: Path) -> None:
    """They are interrupted, and its session is over."""
    with host(path, mode="hold") as other:
        read_until(other, "called")
    open_and_close(path)
    assert outcomes(path)["h-0-0"] == "interrupted"
    with Reader(path) as reader:
        assert {session.ending for session in reader.sessions()} == {"interrupted"}


def test_two_processes_write_one_log(path: Path) -> None:
    """Both get on, and no record of either is lost."""
    with host(path, "a") as one, host(path, "b") as two:
        answered = {read_until(each, f"{name}-0-20") for each, name in ((one, "a"), (two, "b"))}
    open_and_close(path)
    found = outcomes(path)
    assert {found[name] for name in answered} == {"success"}
    assert set(found.values()) <= {"success", "interrupted"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_calls_end_and_loses_none(path: Path, number: signal.Signals) -> None:
    """Drain, then stop: every call has its result, and nothing is open."""
    with host(path, mode="hold") as process:
        for _ in range(3):
            read_until(process, "called")
        process.send_signal(number)
        assert process.wait(timeout=30) == 0
    assert list(path.parent.iterdir()) == [path]
    assert list(outcomes(path).values()) == ["success"] * 3


def test_a_second_signal_stops_at_once_and_leaves_a_sound_log(path: Path) -> None:
    """Calls that do not end are given up; the next host closes them."""
    with host(path, mode="stuck") as process:
        for _ in range(3):
            read_until(process, "called")
        process.send_signal(signal.SIGTERM)
        read_until(process, "stopping")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 130
    open_and_close(path)
    assert list(outcomes(path).values()) == ["interrupted"] * 3


@pytest.mark.parametrize("folder_mode", [0o777, 0o555], ids=["file", "file and folder"])
def test_a_file_that_cannot_be_written_is_a_clear_error(folder_mode: int) -> None:
    """It is named, with what to do; nothing is written."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sessions.db"
        open_and_close(path)
        before = path.read_bytes()
        path.chmod(0o444)
        path.parent.chmod(folder_mode)
        message = answer_for_nobody(lambda: open_log(path, "normal", 0))
        assert str(path) in message
        assert "writable" in message
        assert path.read_bytes() == before


def count_calls(path: Path) -> int:
    with Reader(path) as reader:
        return len(reader.calls())


def test_an_archive_can_be_read_where_nothing_can_be_written() -> None:
    """A log on a read-only medium is as good to read as any."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "sessions.db"
        open_and_close(path)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        assert answer_for_nobody(lambda: count_calls(path)) == "0"


def test_a_full_disk_ends_in_a_clear_error_and_a_sound_log(path: Path) -> None:
    """Calls are refused; what was answered before is there, and the log opens again."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    answered: list[str] = []
    with host(path, size=20_000, before=limit) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("LogError"):
                break
            if line.startswith("h-"):
                answered.append(line.strip())
    assert "session log" in line and "disk" in line
    open_and_close(path)
    found: Any = outcomes(path)
    assert answered
    assert {found[name] for name in answered} == {"success"}
