"""The journal of a log for which nobody waits: records are handed over as they are, and written in their turn.

Arguments and results are frozen, so masking and encoding can be left to the writer's thread. What is large is committed
before anybody goes on, as in any other log: so what is queued is bounded. What the thread cannot write breaks the log,
and from then on every call is refused.
"""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from functools import partial
from time import perf_counter
from typing import Any

from dsh_hookspecs import JsonValue, ToolExecution, ToolExecutionResult

from dsh_runtime.services.sessions.bounds import weighs_more
from dsh_runtime.services.sessions.encode import result_is_large
from dsh_runtime.services.sessions.events import ToolResult
from dsh_runtime.services.sessions.journal import Journal, call_row, event_row
from dsh_runtime.services.sessions.schema import Row
from dsh_runtime.services.sessions.store import MADE


class LazyJournal(Journal):
    """Hands over what happens to calls, and waits for nothing but room in the queue."""

    def called(self, exec: ToolExecution, plugin: str | None = None) -> Coroutine[Any, Any, None] | None:
        """Hand over that a call entered. What this raises refuses the call."""
        store = self.store
        if exec.dry_run or store.crowded or weighs_more(exec.arguments, MADE):
            return self._call_committed(exec, plugin)
        session, parent = self._place(exec)
        seq = self._enter(exec, session)
        try:
            store.post_made(partial(self._made_call, session.number, seq, self.clock(), exec, plugin, parent))
        except BaseException:
            self._forget(exec.token)
            raise
        return None

    def finished(
        self,
        exec: ToolExecution,
        result: ToolExecutionResult,
        story: Sequence[JsonValue] | None,
        views: JsonValue = None,
    ) -> Coroutine[Any, Any, None] | None:
        """Hand over the result of a call."""
        call, store = self._calls.get(exec.token), self.store
        if call is None or store.crowded or result_is_large(result, story, views):
            return self._result_committed(exec, result, story, views)
        ms = (perf_counter() - call.began) * 1e3
        session = call.session
        place = (session.number, session.next_seq(), self.clock(), call.seq)
        try:
            store.post_made(partial(self._made_result, *place, result, story, views, ms))
        finally:
            self._forget(exec.token)
        return None

    # In the writer's thread.

    def _made_call(
        self, number: int, seq: int, now: int, exec: ToolExecution, plugin: str | None, parent: str | None
    ) -> Row:
        return call_row(number, seq, now, exec, self.scribe.small_call(exec, plugin, parent))

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
        encoded = self.scribe.small_result(result, story, views, ms)
        return event_row(number, seq, now, ToolResult.type, call, encoded)
