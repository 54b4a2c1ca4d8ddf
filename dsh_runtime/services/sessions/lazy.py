"""The journal of a log for which nobody waits: records are handed over as they are, and written in their turn.

Arguments and results are frozen, so masking and encoding can be left to the writer's thread. What is large is committed
before anybody goes on, as in any other log: so what is queued is bounded. What the thread cannot write breaks the log,
and from then on every call is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter

from dsh_hookspecs import JsonValue, ToolExecution, ToolExecutionFailure, ToolExecutionResult

from dsh_runtime.services.sessions.bounds import weighs_more
from dsh_runtime.services.sessions.encode import LONG
from dsh_runtime.services.sessions.journal import Journal, call_event, call_row, event_row, result_event
from dsh_runtime.services.sessions.schema import Row
from dsh_runtime.services.sessions.store import MADE


class LazyJournal(Journal):
    """Hands over what happens to calls, and waits for nothing but room in the queue."""

    async def called(self, exec: ToolExecution, plugin: str | None = None) -> None:
        """Hand over that a call entered. What this raises refuses the call."""
        if exec.dry_run or weighs_more(exec.arguments, MADE):
            await super().called(exec, plugin)
            return
        if self.store.crowded:
            await self.store.room()
        session, parent = self._place(exec)
        seq = self._enter(exec, session)
        make = partial(self._made_call, session.number, seq, self.clock(), exec, plugin, parent)
        try:
            self.store.post_made(make)
        except BaseException:
            self._forget(exec.token)
            raise

    async def finished(
        self,
        exec: ToolExecution,
        result: ToolExecutionResult,
        story: Sequence[JsonValue] | None,
        views: JsonValue = None,
    ) -> None:
        """Hand over the result of a call."""
        call = self._calls.get(exec.token)
        if call is None or _is_large(result, story, views):
            await super().finished(exec, result, story, views)
            return
        ms = (perf_counter() - call.began) * 1e3
        try:
            if self.store.crowded:
                await self.store.room()
            place = (call.session.number, call.session.next_seq(), self.clock(), call.seq)
            self.store.post_made(partial(self._made_result, *place, result, story, views, ms))
        finally:
            self._forget(exec.token)

    # In the writer's thread.

    def _made_call(
        self, number: int, seq: int, now: int, exec: ToolExecution, plugin: str | None, parent: str | None
    ) -> Row:
        encoded = self.scribe.now(call_event(exec, plugin, parent), small=True)
        return call_row(number, seq, now, exec, encoded)

    def _made_result(
        self,
        number: int,
        seq: int,
        now: int,
        call: int,
        result: ToolExecutionResult,
        story: Sequence[JsonValue] | None,
        views: JsonValue,
        ms: float,
    ) -> Row:
        event = result_event(result, story, views, ms)
        return event_row(number, seq, now, call, event, self.scribe.now(event, small=True))


def _is_large(result: ToolExecutionResult, story: Sequence[JsonValue] | None, views: JsonValue) -> bool:
    """Whether the record of a result should not be queued as it is."""
    if weighs_more(result.content, MADE) or (story is not None and len(story) > LONG):
        return True
    if isinstance(result, ToolExecutionFailure) and len(result.error.message) > MADE:
        return True
    return any(value is not None and weighs_more(value, MADE) for value in (result.meta, views))
