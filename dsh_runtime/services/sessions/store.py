"""The writer: one thread that owns the connection and commits whatever is queued, as one group.

The loop puts records into a queue and waits; the thread takes all that stand there, commits them in one transaction and
wakes the waiters of the group with one message to the loop. A group of records alone is a single statement, during
which the thread does not hold the interpreter: the loop works on meanwhile.

Where nobody waits, the thread lets records gather for a moment, so that it is not woken for each, and makes their text
itself. The queue is bounded in either case.

A commit that fails breaks the log: from then on every record is refused, until the log is opened again. So does a file
that has been deleted, moved or replaced: SQLite would go on writing to what nobody can find any more.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import trio
from attrs import define

from dsh_runtime.services.sessions.errors import LogError, log_error
from dsh_runtime.services.sessions.files import identity
from dsh_runtime.services.sessions.schema import Row, insert_sql

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
Step = Callable[["sqlite3.Connection"], Any]
#: Makes a record, in the thread.
Maker = Callable[[], Row]

#: The largest statement, and the largest group, in records.
_STATEMENT: Final = 64
_GROUP: Final = 1024
#: What a record that is yet to be made counts as: it is to have no more characters.
MADE: Final = 32_768
#: How many seconds records gather that nobody waits for.
_GATHERING: Final = 0.002
#: How many seconds at least lie between two looks at where the file is: the thread gives the interpreter up for one.
_LOOKING: Final = 0.05


@define(eq=False)
class _Entry:
    """What was put into the queue at one time: a record, or a step to carry out."""

    row: Row | None
    step: Step | None
    task: trio.lowlevel.Task | None
    size: int
    answer: Any = None
    error: BaseException | None = None


class _Made:
    """A record that is yet to be made, which nobody waits for. It has little more than an entry that is made fast."""

    __slots__ = ("error", "make", "row")

    step = task = None
    size = MADE
    row: Row | None
    error: BaseException | None

    def __init__(self, make: Maker) -> None:
        self.make = make


class _Close:
    """The last entry of the queue."""


_Item: TypeAlias = "_Entry | _Made"


class Store:
    """Appends records to the log at ``path`` through ``db``, which the store owns from now on. Made in the loop."""

    def __init__(self, db: sqlite3.Connection, path: Path, *, max_queue_bytes: int, gather: bool = False) -> None:
        self.path = path
        self.changed = trio.lowlevel.ParkingLot()
        self.commits = 0
        self._db = db
        self._room = max_queue_bytes
        self._crowd = trio.lowlevel.ParkingLot()
        self._queue: SimpleQueue[_Item | _Close] = SimpleQueue()
        self._hurry = threading.Event() if gather else None
        self._held: list[_Item] = []
        self._token = trio.lowlevel.current_trio_token()
        self._broken: str | None = None
        self._closed = False
        self._identity = identity(path)
        self._looked = 0.0
        self._thread = threading.Thread(target=self._write, name="dsh-session-log", daemon=True)
        self._thread.start()

    # In the loop.

    @property
    def broken(self) -> str | None:
        """Why the log takes no more records, ``None`` while it does."""
        return self._broken

    @property
    def closed(self) -> bool:
        """Whether the log has been closed."""
        return self._closed

    @property
    def usable(self) -> bool:
        """Whether the log takes records."""
        return self._broken is None and not self._closed

    @property
    def crowded(self) -> bool:
        """Whether more is queued than the queue should hold; wait for :meth:`room` before the next record."""
        return self._room < 0

    async def room(self) -> None:
        """Wait until the queue has room. A record that is on its way cannot be called back: no cancellation here."""
        with trio.CancelScope(shield=True):
            while self._room < 0 and self._broken is None:
                await self._crowd.park()

    @trio.lowlevel.enable_ki_protection
    async def append(self, row: Row) -> None:
        """Commit a record; returns once it is safe. Not cancelled half-way."""
        self._check()
        entry = _Entry(row, None, trio.lowlevel.current_task(), len(row[9]))
        self._put(entry)
        await trio.lowlevel.wait_task_rescheduled(_no_abort)
        if entry.error is not None:
            raise LogError(str(entry.error))

    def post(self, row: Row) -> None:
        """Commit a record in its turn, without waiting for it."""
        self._check()
        self._put(_Entry(row, None, None, len(row[9])))

    def hold(self, row: Row) -> None:
        """Commit a record together with the next one: it wakes nobody, and costs no commit of its own."""
        self._check()
        self._held.append(_Entry(row, None, None, len(row[9])))
        self._room -= len(row[9])
        if self._room < 0:
            self._release()

    def post_made(self, make: Maker) -> None:
        """Commit, in its turn, the record that ``make`` gives in the writer's thread; it counts as :data:`MADE`."""
        if self._broken is not None or self._closed:
            self._check()
        self._put(_Made(make))

    @trio.lowlevel.enable_ki_protection
    async def run(self, step: Callable[[sqlite3.Connection], T]) -> T:
        """Carry out a step in a transaction, in its turn, and give back what it returns."""
        self._check()
        entry = _Entry(None, step, trio.lowlevel.current_task(), 0)
        self._put(entry)
        await trio.lowlevel.wait_task_rescheduled(_no_abort)
        if entry.error is not None:
            raise LogError(str(entry.error)) from entry.error
        answer: T = entry.answer
        return answer

    def post_step(self, step: Step) -> None:
        """Carry out a step in its turn, without waiting for it."""
        self._check()
        self._put(_Entry(None, step, None, 0))

    async def close(self) -> None:
        """Commit what is queued, close the connection, and wait until the thread has ended."""
        self._closed = True
        self._release()
        self._queue.put(_Close())
        if self._hurry is not None:
            self._hurry.set()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._thread.join)
        self.changed.unpark_all()

    def _check(self) -> None:
        if self._broken is not None:
            raise LogError(self._broken)
        if self._closed:
            raise LogError(f"session log {str(self.path)!r}: it is closed and takes no more records")

    def _release(self) -> None:
        for entry in self._held:
            self._queue.put(entry)
        self._held.clear()

    def _put(self, entry: _Item) -> None:
        if self._held:
            self._release()
        self._room -= entry.size
        self._queue.put(entry)
        if self._hurry is not None and (entry.task is not None or self._room < 0):
            self._hurry.set()

    def _committed(self, group: Sequence[_Item]) -> None:
        """Wake the waiters, all at once: waking half of them first makes two groups of one, and costs a fifth."""
        self.commits += 1
        self._room += sum([entry.size for entry in group])
        if self._crowd and (self._room >= 0 or self._broken is not None):
            self._crowd.unpark_all()
        if self.changed:
            self.changed.unpark_all()
        for entry in group:
            if entry.task is not None:
                trio.lowlevel.reschedule(entry.task)

    # In the thread.

    def _write(self) -> None:
        try:
            while group := self._next_group():
                self._commit_group(group)
                self._tell(group)
        finally:
            self._db.close()

    def _next_group(self) -> list[_Item]:
        """All that is queued, waiting for the first; nothing at the end."""
        queue, group = self._queue, list[_Item]()
        while not group or (len(group) < _GROUP and queue.qsize()):
            entry = queue.get()
            if isinstance(entry, _Close):
                if group:
                    queue.put(entry)
                break
            group.append(entry)
            if self._hurry is not None and len(group) == 1:
                self._hurry.wait(_GATHERING)
                self._hurry.clear()
        return group

    def _commit_group(self, group: Sequence[_Item]) -> None:
        if self._broken is None:
            try:
                self._commit(group)
                self._look()
            except BaseException as error:
                self._break(error)
        if self._broken is not None:
            for entry in group:
                entry.error = LogError(self._broken)

    def _commit(self, group: Sequence[_Item]) -> None:
        for entry in group:
            if type(entry) is _Made:
                entry.row = entry.make()
        rows = [entry.row for entry in group if entry.row is not None]
        if len(rows) == len(group) <= _STATEMENT:
            _insert(self._db, rows)
            return
        self._db.execute("BEGIN IMMEDIATE")
        for entries in _runs(group):
            if entries[0].step is not None:
                entries[0].answer = entries[0].step(self._db)
            else:
                _insert(self._db, [entry.row for entry in entries if entry.row is not None])
        self._db.execute("COMMIT")

    def _look(self) -> None:
        """See that what was committed stands where it is looked for. A record after a pause is always looked after."""
        now = time.monotonic()
        if now - self._looked < _LOOKING:
            return
        self._looked = now
        if identity(self.path) != self._identity:
            raise LogError(f"session log {str(self.path)!r}: somebody deleted, moved or replaced it; put it back")

    def _break(self, error: BaseException) -> None:
        import sqlite3

        explained = log_error(self.path, error) if isinstance(error, sqlite3.Error) else error
        self._broken = f"{explained}; no call is served until the log is opened again"
        with contextlib.suppress(sqlite3.Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _tell(self, group: Sequence[_Item]) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._committed, group)


def _runs(group: Sequence[_Item]) -> list[list[_Item]]:
    """The group in order: steps one by one, records by the statement."""
    runs: list[list[_Item]] = []
    for entry in group:
        if runs and entry.step is None and runs[-1][0].step is None and len(runs[-1]) < _STATEMENT:
            runs[-1].append(entry)
        else:
            runs.append([entry])
    return runs


def _insert(db: sqlite3.Connection, rows: Sequence[Row]) -> None:
    db.execute(insert_sql(len(rows)), rows[0] if len(rows) == 1 else list(chain.from_iterable(rows)))


def _no_abort(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.FAILED
