"""A server that is a program: started with the environment that the config gives, and ended whatever it does.

Its end: stdin is closed; what is still there after ``stop_timeout`` gets SIGTERM, and after as long again SIGKILL, with
all that it has started in its process group.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trio

from dsh_plugin_mcp_client._config import Config
from dsh_plugin_mcp_client._errors import McpServerGoneError
from dsh_plugin_mcp_client._messages import MessageReader, MessageWriter
from dsh_plugin_mcp_client._stderr import log_stderr


@asynccontextmanager
async def program(config: Config, logger: logging.Logger) -> AsyncIterator[tuple[MessageReader, MessageWriter]]:
    """Run the server for the body; give its messages and a way to send some."""
    process = await _start(config)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log_stderr, process.stderr, logger)
            try:
                yield (
                    MessageReader(process.stdout, config.max_message_bytes),
                    MessageWriter(process.stdin),
                )
            finally:
                with trio.CancelScope(shield=True):
                    await _end(process, config.stop_timeout)
                nursery.cancel_scope.cancel()
    finally:
        with trio.CancelScope(shield=True):
            for pipe in (process.stdin, process.stdout, process.stderr):
                await pipe.aclose()


async def _start(config: Config) -> trio.Process:
    assert config.command is not None
    program, *arguments = config.command
    found = _find(program)
    try:
        # What the child starts is in its process group, and ends with it.
        return await trio.lowlevel.open_process(
            [found, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(config.env),
            cwd=config.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise McpServerGoneError(f"the program {program!r} cannot be started: {error}") from error


def _find(program: str) -> str:
    """The path of a program, found as the host finds programs: the server's environment may have no ``PATH``."""
    found = shutil.which(program)
    if found is None:
        raise McpServerGoneError(f"no program {program!r} is found; give its path, or install it")
    return os.path.abspath(found)


async def _end(process: trio.Process, seconds: float) -> None:
    """Wait for the end, hastening it; the group is killed in any case, for what the program leaves behind."""
    assert process.stdin is not None
    await process.stdin.aclose()
    try:
        for hint in (None, signal.SIGTERM):
            if hint is not None:
                _signal_group(process, hint)
            with trio.move_on_after(seconds):
                await process.wait()
                return
    finally:
        _signal_group(process, signal.SIGKILL)
        await process.wait()


def _signal_group(process: trio.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
