"""The task that has a host reload whenever its files change.

Changes are handed on while a reload is under way: the reloader puts them together, and a new version that hangs is
given up for a newer one. So that a flood of them starts no flood of tasks, few are under way at once, and what comes
meanwhile is collected.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from dsh_runtime.core.errors import DisposedError
from dsh_runtime.loader.errors import ConfigError, ConfigProblem

from .places import Stamp, sources_since, stamp_of
from .watcher import Changes, Watcher, WatchfilesMissingError, load_notify

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host
    from dsh_runtime.loader.reload.report import ReloadReport

_log = logging.getLogger("dsh.host")

_AT_ONCE: Final = 4

Tell = Callable[["ReloadReport"], None]
TellMissing = Callable[[frozenset[Path], frozenset[Path]], None]


def start_reloading(host: Host) -> None:
    """Have a host reload by itself for as long as it is open, as its config asks for."""
    try:
        load_notify()
    except WatchfilesMissingError as error:
        path = ("host", "reload")
        raise ConfigError([ConfigProblem(path, f"{error}, or remove reload = true", host.config.where(path))]) from None
    host.ctx.start_soon(AutoReload(host).run)


class AutoReload:
    """Reloads a host while :meth:`run` runs.

    ``more`` gives folders to watch beside those that the host rests on, ``tell`` hears of each reload, and
    ``tell_missing`` of folders that are gone, and of those that are back.
    """

    def __init__(
        self,
        host: Host,
        *,
        more: Callable[[], frozenset[Path]] = frozenset,
        tell: Tell | None = None,
        tell_missing: TellMissing | None = None,
    ) -> None:
        self._host = host
        self._more = more
        self._tell = tell
        self._tell_missing = tell_missing
        self._missing: frozenset[Path] = frozenset()
        #: Where the problems of the last reload are: what failed to be imported is loaded by nobody.
        self._trouble: frozenset[Path] = frozenset()
        self._lock = threading.Lock()
        self._changes = Changes()
        self._there = trio.Event()
        self._under_way = 0
        self._told: ReloadReport | None = None
        self._looked_at = host.opened_at
        #: Of the config's files, those that are as they were when the host read them.
        self._stamps = {file: stamp for file, stamp in self._config_stamps().items() if not _is_newer(stamp, host)}

    async def run(self) -> None:
        """Watch and reload until cancelled."""
        token = trio.lowlevel.current_trio_token()

        def take(changes: Changes) -> None:
            with self._lock:
                self._changes |= changes
            token.run_sync_soon(self._wake, idempotent=True)

        await self._host.reload.prepare()
        watcher = Watcher(self._folders(), self._files(), take)
        try:
            with watcher:
                async with trio.open_nursery() as nursery:
                    while True:
                        await self._there.wait()
                        self._there = trio.Event()
                        if self._under_way < _AT_ONCE and (taken := self._taken()) != Changes():
                            self._under_way += 1
                            nursery.start_soon(self._reload, watcher, taken)
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(watcher.join)

    async def _reload(self, watcher: Watcher, changes: Changes) -> None:
        try:
            report = await self._report(changes)
            if report is not None:
                self._trouble = self._places_of(report)
            self._look_for_missing()
            watcher.watch(self._folders(), self._files())
            if report is not None and not report.empty and self._tell is not None and report is not self._told:
                self._told = report  # Of what was put together everybody gets one report.
                self._tell(report)
        except DisposedError:
            return
        except Exception:
            _log.exception("a reload failed by a fault of the host; what ran goes on as it was")
        finally:
            self._under_way -= 1
        with self._lock:
            left = self._changes != Changes()
        if left:
            self._wake()

    async def _report(self, changes: Changes) -> ReloadReport | None:
        reload = self._host.reload
        if not changes.missed:
            return await reload.changed(changes.paths)
        stamps, looked_at = self._config_stamps(), time.time_ns()
        newer = await trio.to_thread.run_sync(sources_since, self._looked_at, self._folders())
        if stamps == self._stamps and not newer and not reload.is_outdated():
            return None
        self._stamps, self._looked_at = stamps, looked_at
        return await reload.refresh()

    def _config_stamps(self) -> dict[Path, Stamp]:
        return {file: stamp_of(file) for file in self._files()}

    def _taken(self) -> Changes:
        with self._lock:
            taken, self._changes = self._changes, Changes()
        return taken

    def _wake(self) -> None:
        self._there.set()

    def _folders(self) -> frozenset[Path]:
        return self._host.reload.watched() | self._more() | self._trouble

    def _look_for_missing(self) -> None:
        missing = frozenset(folder for folder in self._folders() | self._missing if not folder.is_dir())
        gone, back, self._missing = missing - self._missing, self._missing - missing, missing
        if (gone or back) and self._tell_missing is not None:
            self._tell_missing(gone, back)

    def _files(self) -> frozenset[Path]:
        config = self._host.config
        files = (*config.sources, *config.value_files)
        return frozenset(Path(os.path.abspath(self._host.file_at(file))) for file in files)

    def _places_of(self, report: ReloadReport) -> frozenset[Path]:
        places = [problem.location for one in report.kept for problem in one.problems]
        return frozenset(Path(self._host.file_at(place.file)).parent for place in places if place is not None)


def _is_newer(stamp: Stamp, host: Host) -> bool:
    return stamp is None or stamp[0] > host.opened_at
