"""The service ``code_runtime``: runs each program in a process of its own."""

from __future__ import annotations

import contextlib
from typing import ClassVar, Final

import trio

from dsh_runtime.code_mode.interface import CodeFailure, CodeOutcome, CodeProgram
from dsh_runtime.code_mode.runtime.config import CodeRuntimeConfig
from dsh_runtime.code_mode.runtime.conversation import Conversation
from dsh_runtime.code_mode.runtime.endings import outcome_of
from dsh_runtime.code_mode.runtime.frames import Failed, Returned
from dsh_runtime.code_mode.runtime.pool import Pool
from dsh_runtime.code_mode.runtime.worker import Worker
from dsh_runtime.code_mode.runtime.workshop import Workshop
from dsh_runtime.core.services import Service

_ABORTED: Final = CodeOutcome(failure=CodeFailure("aborted", "the run was aborted before it began"))


class SubprocessRuntime(Service):
    """Runs Python programs, each in a fresh and confined interpreter."""

    name: ClassVar[str] = "code_runtime"
    Config = CodeRuntimeConfig
    language = "python"

    def __init__(self, config: CodeRuntimeConfig | None = None) -> None:
        self.config = config if config is not None else CodeRuntimeConfig()

    def start(self) -> None:
        """Keep workers ready from now on, in the background."""
        self._workshop = Workshop(self.config)
        self._pool = Pool(self._workshop, self.config.spares)
        self._runs = trio.Semaphore(self.config.runs)
        self.ctx.start_soon(self._pool.serve)

    async def stop(self) -> None:
        """End the workers in reserve and the template."""
        await self._pool.close()

    async def settle(self) -> None:
        """Wait until the reserve is full, and nothing is left of programs that have ended."""
        await self._pool.settle()

    async def run(self, program: CodeProgram) -> CodeOutcome:
        """Run a program to its end. Raises ``CodeRuntimeError`` where none can be run."""
        size = len(program.code.encode("utf-8", "replace"))
        if size > self.config.frame_bytes // 2:
            program.bridge.close()
            text = f"the program is too long: {size:,} bytes; at most {self.config.frame_bytes // 2:,}"
            return CodeOutcome(failure=CodeFailure("exception", text))
        abort = _Abort()
        undo = program.signal.add_callback(abort.from_anywhere)
        try:
            worker = await self._a_worker(program, abort)
            return _ABORTED if worker is None else await self._run(worker, program, abort)
        finally:
            undo()

    async def _a_worker(self, program: CodeProgram, abort: _Abort) -> Worker | None:
        """A worker and the right to use it; nothing if the run is aborted before that."""
        worker = None
        try:
            if not program.signal.aborted:
                with abort.scope:
                    worker = await self._take_turn()
        finally:
            if worker is None:
                program.bridge.close()
        return worker

    async def _take_turn(self) -> Worker:
        try:
            self._runs.acquire_nowait()
        except trio.WouldBlock:
            await self._runs.acquire()
        try:
            return self._pool.take_ready() or await self._pool.take()
        except BaseException:
            self._runs.release()
            raise

    async def _run(self, worker: Worker, program: CodeProgram, abort: _Abort) -> CodeOutcome:
        conversation = Conversation(worker, program, self.config)
        output = conversation.output
        abort.conversation = conversation
        try:
            ending = await conversation.hold()
            # A lone process that has been killed does nothing more, though its memory may take a moment to be freed.
            if not worker.alone or not isinstance(ending, (Returned, Failed)):
                await worker.rest()
            output.drain()
            return outcome_of(ending, worker.exit, output.text(), output.too_much, self.config)
        except BaseException:
            await worker.rest()
            raise
        finally:
            self._runs.release()
            self._pool.dismiss(worker)


class _Abort:
    """Passes an abort on to whatever a run is at."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.conversation: Conversation | None = None
        self._token = trio.lowlevel.current_trio_token()

    def from_anywhere(self) -> None:
        """The signal's callback, in whatever thread."""
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._abort)

    def _abort(self) -> None:
        self.scope.cancel()
        if self.conversation is not None:
            self.conversation.abort()
