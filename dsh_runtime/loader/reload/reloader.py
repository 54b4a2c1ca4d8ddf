"""The reloader of a running host: ``host.reload``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from dsh_runtime.core.errors import DisposedError
from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.model import HostConfig

from .aside import FreshFinder
from .attempt import Attempt
from .graph import GraphReading, Module, ModuleGraph, SourceCache
from .report import ReloadReport
from .survey import Disk, subjects_of
from .transaction import Transaction
from .wishes import Wish

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host

_log = logging.getLogger("dsh.host")
PATIENCE: Final = 1.0
"""How long a new version may be applied, in seconds, before a newer wish makes an end of it."""
READING: Final = 0.02
"""How long sources are read in the event loop, in seconds, before a thread goes on with it."""


class Reloader:
    """Puts new versions of plugins, and edits of the config, in force while the host runs.

    One reload runs at a time; what is asked for meanwhile is put together and done next, and everybody who asked gets
    the report of that. A reload that its caller no longer waits for runs to its end all the same.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        #: Reads the config afresh. Whoever opened the host with more than its file says can put another in its place.
        self.read_config: Callable[[], HostConfig] = self._read_config
        self.finder = FreshFinder()
        self.cache = SourceCache()
        self.disk = Disk(host.opened_at)
        #: The plugins whose last reload failed, and whether that of the config did.
        self.failed: dict[str, None] = dict.fromkeys(one.id for one in host.plugins if _is_broken(one))
        self.config_failed = False
        self._wish: Wish | None = None
        self._wished = trio.Event()
        self._working = False
        host.ctx.effect(self._stand_in_front)
        self.disk.note_first(self._take_roots(host.config))

    async def changed(self, paths: Iterable[Path]) -> ReloadReport:
        """Reload the plugins that depend on files which were changed, added or deleted, config files included.

        Paths that concern no plugin are passed over. A plugin whose last reload failed is tried again with every
        change of a source.
        """
        return await self._ask(Wish(paths=set(map(_absolute, paths))))

    async def plugins(self, ids: Iterable[str]) -> ReloadReport:
        """Reload some plugins by their ids, whether or not their sources have changed."""
        return await self._ask(Wish(ids=dict.fromkeys(ids)))

    async def config(self) -> ReloadReport:
        """Read the config file afresh and put in force what it changes, all or nothing."""
        return await self._ask(Wish(config=True))

    async def refresh(self) -> ReloadReport:
        """Reload whatever differs from what is loaded: the config and every source. What SIGHUP asks for."""
        return await self._ask(Wish(config=True, everything=True))

    async def prepare(self) -> None:
        """Read the sources of all plugins beforehand, so that the first reload need not."""
        self.disk.note(await self.graph(self.host.config), ())

    async def rest(self) -> None:
        """Wait until no reload is under way and every old version has come to rest."""
        kernel = self.host.ctx.fiber.kernel
        while self._working or kernel.retired.fibers:
            await kernel.next_change()

    def watched(self) -> frozenset[Path]:
        """The folders whose files matter (those in them, not below them): of plugins' sources and of the config."""
        config = self.host.config
        files = [self.host.file_at(file) for file in (*config.sources, *config.value_files)]
        files += [module.file for module in self._modules() if module.loose and module.file]
        anchors = (subject.anchor for subject in subjects_of(self.host, config))
        files += [anchor.file for anchor in anchors if anchor is not None and anchor.file is not None]
        return frozenset(Path(os.path.abspath(file)).parent for file in files)

    def is_outdated(self) -> bool:
        """Whether a source differs from what is loaded, as far as can be told without importing anything."""
        return any(True for _ in self.disk.dirty(self._modules(), self.finder.stamps))

    # One at a time.

    async def _ask(self, wish: Wish) -> ReloadReport:
        if self._wish is not None:
            self._wish.take_in(wish)
        else:
            self._wish = wish
        self._wished.set()
        if not self._working:
            try:
                self.host.ctx.start_soon(self._work)
            except DisposedError:
                self._wish = None
                raise
            self._working = True
        return await wish

    async def _work(self) -> None:
        try:
            while self._wish is not None:
                wish, self._wish = self._wish, None
                self._wished = trio.Event()
                try:
                    await self._carry_out(wish)
                except Exception as error:  # A fault of the host's own; what ran goes on as it was.
                    wish.fail(error)
                except BaseException:
                    wish.fail(DisposedError("the host unwinds"))
                    raise
        finally:
            if self._wish is not None:
                self._wish.fail(DisposedError("the host unwinds"))
            self._wish = None
            self._working = False
            self.host.ctx.fiber.kernel.something_changed()

    async def _carry_out(self, wish: Wish) -> None:
        report = await Attempt(self, wish).run()
        if report is not None:
            self._tell(report)
            wish.fulfil(report)
        elif self._wish is not None:
            self._wish.take_in(wish)
        else:
            self._wish = wish

    async def watch_for_newer(self, transaction: Transaction) -> None:
        """Supersede a transaction that has had its time, as soon as there is a newer wish."""
        await trio.sleep(PATIENCE)
        await self._wished.wait()
        transaction.supersede()

    @staticmethod
    def _tell(report: ReloadReport) -> None:
        for line in report.lines():
            _log.log(logging.INFO if report.ok else logging.WARNING, "%s", line, extra={"dsh_reload": True})

    # Looking.

    async def graph(self, config: HostConfig) -> ModuleGraph:
        """The modules that the plugins rest on. What takes long to read is read in a thread."""
        reading = GraphReading(self._take_roots(config), dict(sys.modules), self.cache)
        graph = reading.read(READING) or await trio.to_thread.run_sync(reading.read)
        assert graph is not None
        self.cache.forget_others({module.file for module in graph.modules.values()})
        return graph

    def _modules(self) -> list[Module]:
        """The modules that the plugins rest on now."""
        graph = GraphReading(self._take_roots(self.host.config), dict(sys.modules), self.cache).read()
        assert graph is not None
        return [*graph.modules.values()]

    def _take_roots(self, config: HostConfig) -> list[str]:
        """The root modules of the plugins; from now on what stands below them is loaded from its source."""
        roots = [subject.root for subject in subjects_of(self.host, config) if subject.root is not None]
        self.finder.tops = frozenset(root.partition(".")[0] for root in roots)
        return roots

    def _read_config(self) -> HostConfig:
        sources = self.host.config.sources
        return load_config(self.host.file_now(sources[-1])) if sources else self.host.config

    def _stand_in_front(self) -> Callable[[], None]:
        self.finder.install()
        return self.finder.uninstall


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))


def _is_broken(plugin: object) -> bool:
    from dsh_runtime.core.lifecycle import State

    fiber = getattr(plugin, "fiber", None)
    return fiber is None or fiber.state is State.FAILED
