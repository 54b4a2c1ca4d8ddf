"""Run one command: JSON in, bytes out, and nothing left behind.

The command is the leader of a process group of its own, which is killed when it has ended, taken too long or printed
too much, or when the call is cancelled.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import trio

from dsh_plugin_hooks_command._answers import Output
from dsh_plugin_hooks_command._config import Hook
from dsh_plugin_hooks_command._errors import HookCommandError

_CHUNK: Final = 65536
_KEPT: Final = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LANG", "TZ")


def environment(more: Mapping[str, str], folder: str) -> dict[str, str]:
    """What a command finds in its environment."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("LC_")}
    return {**kept, "CLAUDE_PROJECT_DIR": folder, "DSH_PROJECT_DIR": folder, **more}


async def run_hook(hook: Hook, given: bytes, env: Mapping[str, str], folder: str, most: int, subject: str) -> Output:
    """Run a hook on its input; :class:`HookCommandError` if it cannot be run, takes too long or prints too much."""
    try:
        process = await trio.lowlevel.open_process(
            hook.command,
            shell=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=folder,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise HookCommandError(f"{subject} cannot be started: {error}") from error
    stdout, stderr = _Pipe(most), _Pipe(most)
    try:
        with trio.move_on_after(hook.timeout) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_feed, process, given)
                nursery.start_soon(stdout.read, process.stdout, nursery.cancel_scope)
                nursery.start_soon(stderr.read, process.stderr, nursery.cancel_scope)
                await process.wait()
                # What it has started may hold the pipes for ever; it ends with its hook.
                _kill(process)
    finally:
        await _end(process)
    if stdout.overflown or stderr.overflown:
        raise HookCommandError(f"{subject} printed more than {most:,} bytes")
    if limit.cancelled_caught:
        raise HookCommandError(f"{subject} took longer than {hook.timeout:g} s")
    assert process.returncode is not None
    return Output(process.returncode, bytes(stdout.found), bytes(stderr.found))


class _Pipe:
    def __init__(self, most: int) -> None:
        self.found = bytearray()
        self.overflown = False
        self._most = most

    async def read(self, pipe: trio.abc.ReceiveStream | None, scope: trio.CancelScope) -> None:
        assert pipe is not None
        while chunk := await pipe.receive_some(_CHUNK):
            self.found += chunk
            if len(self.found) > self._most:
                self.overflown = True
                scope.cancel()
                return


async def _feed(process: trio.Process, given: bytes) -> None:
    assert process.stdin is not None
    # A hook need not read what it is given.
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        await process.stdin.send_all(given)
    await process.stdin.aclose()


async def _end(process: trio.Process) -> None:
    _kill(process)
    with trio.CancelScope(shield=True):
        await process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            await pipe.aclose()


def _kill(process: trio.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
