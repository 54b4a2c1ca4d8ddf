"""How the sub-calls of one program reach the pipeline: in the order in which they come, each as a call of its own.

A sub-call takes its turn behind the one before it, then runs as the next call of a batch would: parallel-safe ones
overlap in a pool, an exclusive one waits for all and has the pool to itself.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio
from dsh_hookspecs import (
    AbortController,
    ContentBlock,
    JsonValue,
    ToolExecutionFailure,
    ToolExecutionResult,
    ToolRunContext,
)

from dsh_runtime.code_mode.interface import SubError, SubReply
from dsh_runtime.tools.batch import Line
from dsh_runtime.tools.definition import ToolExecutionInput
from dsh_runtime.tools.failures import ORDINARY, message_of, sole

if TYPE_CHECKING:
    from dsh_runtime.code_mode.config import CodeModeConfig
    from dsh_runtime.code_mode.dispatch_log import DispatchLog
    from dsh_runtime.tools.runtime import ToolRuntime

#: The content that a program cannot print, and the model would never see.
MEDIA: Final = ("image", "audio")
_log = logging.getLogger("dsh.code_mode")
_ENDED: Final = "the program has ended"


class ToolBridge:
    """The bridge of one program. ``exec`` is that of its ``run_code`` call, ``numbers`` what its sub-calls go by."""

    def __init__(
        self,
        tools: ToolRuntime,
        exec: ToolRunContext,
        log: DispatchLog,
        config: CodeModeConfig,
        numbers: Iterator[int],
    ) -> None:
        self._exec = exec
        self._numbers = numbers
        self._log = log
        self._config = config
        self._machine = tools.machine
        self._line = Line(tools, config.max_parallel)
        # A signal of the bridge's own, which the outer one aborts, is looked at faster than one that asks two others.
        self._controller = AbortController()
        self._signal = self._controller.signal
        self._untie = exec.signal.add_callback(lambda: self._controller.abort(exec.signal.reason))
        outer = self._machine.calls.get(exec.token)
        self._tells_progress = outer is not None and bool(outer.pipeline.progress)
        self._last_started: trio.Event | None = None
        self._closed = False
        self._count = 0
        self._done = 0
        self.media: list[ContentBlock] = []
        self.media_left_out = 0

    def enter(self, name: str, arguments: JsonValue) -> Callable[[], Awaitable[SubReply]]:
        """Give a sub-call its id and its place in the order."""
        if self._closed:
            return partial(_refused, SubError(_ENDED, "AbortError", code="ABORTED"))
        if self._count >= self._config.sub_calls:
            message = f"a program may make {self._config.sub_calls:,} calls, and this one has made them"
            return partial(_refused, SubError(message, "CodeLimitError", code="TOO_MANY_CALLS"))
        self._count += 1
        outer = self._exec
        call = ToolExecutionInput(
            call_id=f"{outer.call_id}:code:{next(self._numbers)}",
            name=name,
            arguments=arguments,
            signal=self._signal,
            agent=outer.agent,
            parent=outer.token,
            root_call_id=outer.root_call_id,
        )
        before, self._last_started = self._last_started, trio.Event()
        return partial(self._run, call, before, self._last_started)

    def close(self) -> None:
        """Abort what is in flight; nothing more is taken in."""
        self._closed = True
        self._untie()
        self._controller.abort(_ENDED)

    async def _run(self, call: ToolExecutionInput, before: trio.Event | None, started: trio.Event) -> SubReply:
        try:
            result = await self._in_turn(call, before, started)
            self._carry_outward(call.name, result)
            await self._log.ended(call.call_id, call.name, result.is_error, result.content)
        except trio.Cancelled:
            await self._log.given_up(call.call_id, call.name)
            raise
        except ORDINARY as error:  # of the log: what is not on record has not happened
            _log.exception("sub-call %r of %r cannot be put on record", call.call_id, call.name)
            return SubReply(error=SubError(message_of(sole(error)), type(sole(error)).__name__, "LOG_UNAVAILABLE"))
        return _reply(result)

    async def _in_turn(
        self, call: ToolExecutionInput, before: trio.Event | None, started: trio.Event
    ) -> ToolExecutionResult:
        """Start behind the sub-call in front; those behind wait for ``started``, whatever comes."""
        try:
            if before is not None and not before.is_set():
                await before.wait()
            self._log.started(call.call_id, call.name)
            if self._line.is_idle:
                self._machine.others_have_run()  # This task is new, or has waited.
            lane = await self._line.enter(call)
        finally:
            started.set()
        return await self._line.run(call, lane)

    def _carry_outward(self, name: str, result: ToolExecutionResult) -> None:
        """Hand on what the program does not get to see; called in the order of the results."""
        for message in result.additional_contexts:
            self._exec.defer_context(message)
        for block in result.content:
            if block.get("type") in MEDIA:
                if len(self.media) < self._config.max_media:
                    self.media.append(block)
                else:
                    self.media_left_out += 1
        self._done += 1
        if self._tells_progress:
            self._exec.progress(self._done, message=name)


async def _refused(error: SubError) -> SubReply:
    return SubReply(error=error)


def _reply(result: ToolExecutionResult) -> SubReply:
    if not isinstance(result, ToolExecutionFailure):
        return SubReply(result.value)
    info: Any = result.error.info
    return SubReply(error=SubError(result.error.message, info and info.name, info and info.code))
