"""What is asked of the reloader, and how what is asked for meanwhile is put together."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from .report import Reloaded, ReloadReport


@define(eq=False)
class Wish:
    """Something to reload; whoever asked awaits it."""

    paths: set[Path] = field(factory=set)
    ids: dict[str, None] = field(factory=dict)
    config: bool = False
    everything: bool = False
    #: What has been reloaded for it before a newer wish came.
    earlier: list[Reloaded] = field(factory=list)
    _done: trio.Event = field(factory=trio.Event)
    _report: ReloadReport | None = None
    _error: BaseException | None = None
    _others: list[Wish] = field(factory=list)

    def take_in(self, other: Wish) -> None:
        """Wish for what another one wished for, too, and answer those who wait for it."""
        self.paths |= other.paths
        self.ids |= other.ids
        self.config |= other.config
        self.everything |= other.everything
        self.earlier += other.earlier
        self._others.append(other)

    def fulfil(self, report: ReloadReport) -> None:
        """Hand the report to everybody who waits."""
        self._report = report
        self._end()

    def fail(self, error: BaseException) -> None:
        """Tell everybody who waits that nothing comes of it."""
        self._error = error
        self._end()

    def _end(self) -> None:
        self._done.set()
        for other in self._others:
            other._report, other._error = self._report, self._error
            other._end()

    def __await__(self) -> Generator[Any, Any, ReloadReport]:
        return self._wait().__await__()

    async def _wait(self) -> ReloadReport:
        await self._done.wait()
        if self._error is not None:
            raise self._error
        assert self._report is not None
        return self._report
