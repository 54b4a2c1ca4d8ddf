"""Records that wait to be written, and who may still make some.

Strategy: a call that is let through has a place for its record from then on, so what ran is always recorded. A call
that is refused has none. Its record is kept if there is room (as much again as for the others); if there is not, it is
counted, and the count is written where the records would have stood.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TypeAlias
from weakref import WeakKeyDictionary

from attrs import evolve
from dsh_hookspecs import ExecutionToken, ToolExecution, ToolExecutionResult

from dsh_plugin_audit_jsonl._entry import Entry, Gap, entry_of

Item: TypeAlias = Entry | Gap


class Spool:
    """A bounded queue of records."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._items: deque[Item] = deque()
        self._being_written = 0
        self._began: WeakKeyDictionary[ExecutionToken, float] = WeakKeyDictionary()
        #: Why nothing can be written just now.
        self.trouble: str | None = None

    def __len__(self) -> int:
        return len(self._items)

    def refusal(self, call: ToolExecution, now: float) -> str | None:
        """Why a call may not run, or ``None``: then it has a place for its record. A dry run takes none."""
        if self.trouble is not None:
            return self.trouble
        if call.token in self._began:
            return None
        if len(self._items) + len(self._began) >= self._capacity:
            return f"{self._capacity} calls are under way or wait for their records to be written"
        if not call.dry_run:
            self._began[call.token] = now
        return None

    def add(self, call: ToolExecution, result: ToolExecutionResult, now: float) -> None:
        """Keep the record of a call that has ended."""
        began = self._began.pop(call.token, None)
        if began is not None:
            self._items.append(entry_of(call, result, now - began))
        elif len(self._items) < 2 * self._capacity:
            self._items.append(entry_of(call, result, None))
        else:
            self._widen_gap()

    def begin(self, limit: int) -> Sequence[Item]:
        """The records to be written next; they stay until :meth:`done`."""
        self._being_written = min(limit, len(self._items))
        return list(islice(self._items, self._being_written))

    def done(self, count: int) -> None:
        """The first ``count`` records have been written."""
        for _ in range(count):
            self._items.popleft()
        self._being_written = 0

    def _widen_gap(self) -> None:
        last = self._items[-1]
        if isinstance(last, Gap) and len(self._items) > self._being_written:
            self._items[-1] = evolve(last, count=last.count + 1)
        else:
            self._items.append(Gap(datetime.now(UTC), 1))
