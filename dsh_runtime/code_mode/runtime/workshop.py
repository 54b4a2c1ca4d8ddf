"""Makes workers: orders them from the template, and sees each process confined before it is used."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import select
import shutil
import sys
import tempfile
from typing import Any, Final

import trio
from dsh_hookspecs import JsonValue

from dsh_runtime.code_mode.runtime.child.order import Order
from dsh_runtime.code_mode.runtime.config import CodeRuntimeConfig
from dsh_runtime.code_mode.runtime.errors import CodeRuntimeError, SandboxError
from dsh_runtime.code_mode.runtime.frames import Dialogue, Inbox, Ready, Unfit, Violation
from dsh_runtime.code_mode.runtime.output import Output
from dsh_runtime.code_mode.runtime.shield import Shield
from dsh_runtime.code_mode.runtime.template import Template
from dsh_runtime.code_mode.runtime.users import Users, choose_range
from dsh_runtime.code_mode.runtime.worker import Worker

_START_SECONDS: Final = 30.0
_MAX_ORDER: Final = 16_384
_CHUNK: Final = 65_536
_MAX_SAID: Final = 1_000

_log = logging.getLogger("dsh.code")


class Workshop:
    """Makes workers, and takes back what they were lent."""

    def __init__(self, config: CodeRuntimeConfig) -> None:
        self._config = config
        self._template = Template()
        self._users: Users | None = None
        self._bwrap: str | None = None
        self._warned = False
        self._shield = Shield()

    async def make(self) -> Worker:
        """A worker that is confined and waits for its program."""
        try:
            return await self._make()
        except _LostError as lost:  # the template was killed with the order in its hands: another one takes over
            with contextlib.suppress(OSError):
                os.rmdir(lost.folder)
            return await self._make()

    async def _make(self) -> Worker:
        order = self._order()
        try:
            worker = Worker(order)
        except OSError as error:
            raise self._refusal(str(error)) from error
        try:
            await self._hand_over(worker)
            with trio.fail_after(_START_SECONDS):
                await self._until_ready(worker)
        except trio.TooSlowError:
            await self.dispose(worker)
            raise self._refusal(f"a process was not ready within {_START_SECONDS:g} s") from None
        except BaseException:
            await self.dispose(worker)
            raise
        return worker

    async def dispose(self, worker: Worker) -> None:
        """Bring a worker to rest, and take back what it was lent."""
        try:
            await worker.dispose()
        finally:
            if self._users is not None:
                self._users.take_back(worker.order["user"])

    async def close(self) -> None:
        """End the template."""
        await self._template.close()
        self._shield.lower()

    def _order(self) -> Order:
        config = self._config
        if not sys.platform.startswith("linux"):
            raise CodeRuntimeError("programs cannot be run: the subprocess runtime needs Linux")
        if self._users is None:
            self._users = Users(choose_range(config.first_user))
        if config.sandbox == "bwrap" and self._bwrap is None:
            self._bwrap = _find_bwrap()
        return Order(
            folder=os.path.join(tempfile.gettempdir(), f"dsh-program-{secrets.token_hex(12)}"),
            user=self._users.lend(),
            memory=config.memory,
            cpu_time=config.cpu_time,
            processes=config.processes,
            threads=config.threads,
            file_bytes=config.file_bytes,
            open_files=config.open_files,
            max_frame=config.frame_bytes,
            sub_calls=config.sub_calls,
            bwrap=self._bwrap,
        )

    async def _hand_over(self, worker: Worker) -> None:
        try:
            await self._template.send(worker.order, worker.ends.descriptors())
        finally:
            worker.ends.close()

    async def _until_ready(self, worker: Worker) -> None:
        """Until the process has said that it is confined, and the warden which process it is."""
        inbox, dialogue = Inbox(_MAX_ORDER), Dialogue(_MAX_ORDER, 0)
        notes: Any = None
        while notes is None or worker.process is None:
            for descriptor, _ in await worker.wait():
                if descriptor == worker.control.fileno():
                    worker.hear_warden()
                else:
                    notes = self._first_word(worker, inbox, dialogue)
        worker.poll.register(worker.output, select.EPOLLIN)
        worker.alone = notes["seccomp"] and not self._config.processes and self._bwrap is None
        if not notes["landlock"] and worker.order["user"] is None and self._bwrap is None:
            self._shield.lift()
        self._warn(notes)

    def _first_word(self, worker: Worker, inbox: Inbox, dialogue: Dialogue) -> JsonValue:
        data = worker.channel.recv(_CHUNK)
        if not data:
            worker.hear_warden()
            problem = worker.failure or "its process ended before it was ready"
            if worker.process is None and worker.failure is None:
                raise _LostError(problem, worker.order["folder"])
            raise self._refusal(problem, worker)
        inbox.feed(data)
        body = inbox.next()
        try:
            message = dialogue.hear(body) if body is not None else None
        except Violation as error:
            raise self._refusal(str(error), worker) from None
        if isinstance(message, Unfit):
            raise self._refusal(message.reason, worker)
        return message.notes if isinstance(message, Ready) else None

    def _refusal(self, reason: str, worker: Worker | None = None) -> CodeRuntimeError:
        """Why there is no worker, with what its process printed: bubblewrap tells there what it lacks."""
        said = Output(worker.output, _MAX_SAID) if worker is not None else None
        if said is not None:
            said.drain()
        text = " ".join((said.text() if said is not None else "").split())
        problem = f"programs cannot be run: {reason}" + (f" ({text})" if text else "")
        if self._bwrap is not None:
            return SandboxError(f"{problem}; see that bubblewrap works for this host's user, or set sandbox = 'none'")
        return CodeRuntimeError(problem)

    def _warn(self, notes: Any) -> None:
        """Say once what this kernel cannot keep a program from."""
        if self._warned or self._bwrap is not None:
            return
        self._warned = True
        if not notes["seccomp"]:
            _log.warning("no seccomp filter here: programs can use the network; set sandbox = 'bwrap'")
        if not notes["landlock"]:
            _log.warning("no Landlock here: programs can read what their user can; set sandbox = 'bwrap'")


class _LostError(CodeRuntimeError):
    """Nobody has taken the order."""

    def __init__(self, message: str, folder: str) -> None:
        super().__init__(f"programs cannot be run: {message}")
        self.folder = folder


def _find_bwrap() -> str:
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxError(
            "programs cannot be run: sandbox = 'bwrap' is asked for and bubblewrap is not installed; "
            "install the package bubblewrap, or set sandbox = 'none'"
        )
    return os.path.realpath(path)
