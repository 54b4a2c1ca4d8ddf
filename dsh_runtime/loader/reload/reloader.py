"""The reloader of a running host: ``host.reload``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.model import HostConfig
from dsh_runtime.loader.reload.report import ReloadReport

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host


class Reloader:
    """Puts new versions of plugins, and edits of the config, in force while the host runs.

    One reload runs at a time; what is asked for meanwhile is put together and done next, and everybody who asked gets
    the report of that. A reload that its caller no longer waits for runs to its end all the same.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        #: Reads the config afresh. Whoever opened the host with more than its file says can put another in its place.
        self.read_config: Callable[[], HostConfig] = self._read_config

    async def changed(self, paths: Iterable[Path]) -> ReloadReport:
        """Reload the plugins that depend on files which were changed, added or deleted, config files included.

        Paths that concern no plugin are passed over. A plugin whose last reload failed is tried again with every
        change of a source.
        """
        return ReloadReport()

    async def plugins(self, ids: Iterable[str]) -> ReloadReport:
        """Reload some plugins by their ids, whether or not their sources have changed."""
        return ReloadReport()

    async def config(self) -> ReloadReport:
        """Read the config file afresh and put in force what it changes, all or nothing."""
        return ReloadReport()

    async def refresh(self) -> ReloadReport:
        """Reload whatever differs from what is loaded: the config and every source. What SIGHUP asks for."""
        return ReloadReport()

    async def rest(self) -> None:
        """Wait until no reload is under way and every old version has come to rest."""

    def watched(self) -> frozenset[Path]:
        """The folders whose files matter (those in them, not below them): of plugins' sources and of the config."""
        return frozenset()

    def _read_config(self) -> HostConfig:
        sources = self._host.config.sources
        return load_config(sources[-1]) if sources else self._host.config
