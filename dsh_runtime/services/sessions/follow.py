"""Following the log: new events as they are committed.

A commit of this process wakes the follower. What other processes commit is noticed by ``PRAGMA data_version``, one
integer that is looked at now and then; only when it has changed are rows read, those behind the last one seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Final

import trio

from dsh_runtime.services.sessions.reading import Reader, StoredEvent
from dsh_runtime.services.sessions.store import Store

#: How often, in seconds, to look whether another process has committed.
INTERVAL: Final = 0.25


class Follower(AsyncIterator[StoredEvent]):
    """Gives the events of one session, or of all, as they come; without end. Use it in an ``async with``.

    ``after`` is the id, or with a session the sequence, of the last event that is known; without it only what is
    committed from now on is given.
    """

    def __init__(
        self,
        path: Path,
        *,
        session: str | None = None,
        after: int | None = None,
        store: Store | None = None,
        interval: float = INTERVAL,
    ) -> None:
        self._path = path
        self._session = session
        self._after = after
        self._store = store
        self._interval = interval
        self._page: list[StoredEvent] = []
        self._seen = (-1, -1)
        self._reader: Reader

    async def __aenter__(self) -> Follower:
        self._reader = await trio.to_thread.run_sync(Reader, self._path)
        if self._after is None:
            self._after = await trio.to_thread.run_sync(self._newest)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()

    async def __anext__(self) -> StoredEvent:
        while not self._page:
            await self._more()
        event = self._page.pop()
        self._after = event.id if self._session is None else event.seq
        return event

    def _newest(self) -> int:
        if self._session is None:
            return self._reader.last_id()
        return self._reader.last_seq(self._session)

    async def _more(self) -> None:
        """Read what is new, if anything has been committed since the last look; else wait a while."""
        commits = self._store.commits if self._store is not None else 0
        version = await trio.to_thread.run_sync(self._reader.data_version)
        if (commits, version) == self._seen:
            await self._wait(commits)
            return
        page = await trio.to_thread.run_sync(self._next_page)
        self._page = page[::-1]
        if not page:
            self._seen = (commits, version)

    def _next_page(self) -> list[StoredEvent]:
        return self._reader.page(session=self._session, after=self._after or 0)

    async def _wait(self, commits: int) -> None:
        if self._store is None:
            await trio.sleep(self._interval)
        elif self._store.commits == commits:
            with trio.move_on_after(self._interval):
                await self._store.changed.park()
