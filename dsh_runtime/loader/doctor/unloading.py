"""Could each plugin be unloaded cleanly? A second host loads them all, and each is unloaded, loaded and unloaded again.

The consumers of a service go before its provider, so that whatever is left when a plugin has gone is that plugin's.
The second life matters: what cannot be applied twice in one process cannot be reloaded.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Final

import trio
from attrs import evolve, field, frozen

from dsh_runtime.core.effects import is_ordinary
from dsh_runtime.core.errors import TeardownTimeoutError
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.lifecycle import State
from dsh_runtime.loader.blame import place_of, summary_of
from dsh_runtime.loader.errors import Location
from dsh_runtime.loader.host import Host, LoadedPlugin, open_host
from dsh_runtime.loader.leftovers import Leftover, describe_task, describe_thread, outliving, tasks, threads
from dsh_runtime.loader.model import HostConfig
from dsh_runtime.loader.ownership import owner_of

from .finding import Finding, Kind, Severity, finding

_HOST_TASKS: Final = ("plugin ", "root plugin")


@frozen(eq=False)
class Unloading:
    """What came of it: the plugins that were looked at, and what they leave. ``folder`` holds the second host's log."""

    folder: str
    host: Host
    examined: list[str] = field(factory=list)
    findings: list[Finding] = field(factory=list)

    def add(self, findings: list[Finding]) -> None:
        """Take in what was found, once: every life of a plugin may leave the same."""
        known = {(found.plugin, found.place, found.remedy): found for found in self.findings}
        for found in findings:
            if known.setdefault((found.plugin, found.place, found.remedy), found) is found:
                self.findings.append(found)

    @property
    def clean(self) -> dict[str, bool]:
        """Of each plugin that was looked at, whether it leaves nothing."""
        unclean = {found.plugin for found in self.findings}
        return {plugin: plugin not in unclean for plugin in self.examined}


@contextlib.asynccontextmanager
async def examined_unloading(
    config: HostConfig, left: Mapping[threading.Thread, str | None]
) -> AsyncIterator[Unloading]:
    """Load and unload every plugin of a config; the report is there before the second host is closed.

    ``left`` are the threads that the first host has left, with the plugins that began them, as far as known: what is
    begun only once, such as by an import, shows there.
    """
    with tempfile.TemporaryDirectory(prefix="dsh-doctor-", ignore_cleanup_errors=True) as folder:
        async with open_host(_aside(config, Path(folder)), strict=False, watchdog=True) as host:
            report = Unloading(folder, host)
            fibers = [plugin.fiber for plugin in host.plugins if plugin.fiber is not None]
            for plugin in _consumers_first(host):
                await _examine(report, host, plugin)
            for thread, owner in left.items():
                if not thread.is_alive():
                    continue
                leftover = describe_thread(thread)
                report.add([_of_first_life(leftover, owner or _owner_by_place(leftover, fibers))])
            yield report


def _aside(config: HostConfig, folder: Path) -> HostConfig:
    """The same host with a log of its own, and no plugin that is switched off."""
    log = evolve(config.host.log, path=str(folder / "sessions.db"))
    return evolve(config, host=evolve(config.host, log=log))


def _consumers_first(host: Host) -> Iterator[LoadedPlugin]:
    """The active plugins of the config, each after those that use its services."""
    left = [plugin for plugin in reversed(host.plugins) if plugin.row is not None and plugin.fiber is not None]
    while left:
        plugin = next((one for one in left if not _is_used(one, left)), left[0])
        left.remove(plugin)
        if plugin.fiber is not None and plugin.fiber.state is State.ACTIVE:
            yield plugin


def _is_used(plugin: LoadedPlugin, others: list[LoadedPlugin]) -> bool:
    fiber = plugin.fiber
    return any(
        other is not plugin and other.fiber is not None and fiber is not None and other.fiber.uses_of(fiber)
        for other in others
    )


async def _examine(report: Unloading, host: Host, plugin: LoadedPlugin) -> None:
    """Unload a plugin, load it again, unload it again."""
    assert plugin.fiber is not None
    found = [_failing_undo(plugin.id, error) for error in await _dispose(plugin.fiber)]
    if plugin.fiber.spec.reload_policy != "restart":
        found += await _live_again(report, host, plugin.id, plugin.fiber)
    report.add(found)
    report.examined.append(plugin.id)


async def _live_again(report: Unloading, host: Host, plugin: str, fiber: Fiber) -> list[Finding]:
    """What there is to say of a second life: nothing runs on when it has ended that did not run before."""
    threads_before, tasks_before = threads(), tasks()
    found = []
    again = host.ctx.plugin(fiber.spec.source, fiber.config, id=plugin)
    try:
        await again.wait()
    except Exception as error:
        found.append(_no_second_life(plugin, error))
    found += [_failing_undo(plugin, error) for error in await _dispose(again)]
    found += [_left(plugin, describe_thread(thread)) for thread in await outliving(threads_before)]
    return found + [_left(plugin, describe_task(task)) for task in _strangers(tasks() - tasks_before)]


def _strangers(found: set[trio.lowlevel.Task]) -> list[trio.lowlevel.Task]:
    return [task for task in found if not task.name.startswith(_HOST_TASKS)]


async def _dispose(fiber: Fiber) -> list[BaseException]:
    try:
        await fiber.dispose()
    except BaseExceptionGroup as group:
        if not is_ordinary(group):
            raise
        return list(group.exceptions)
    except Exception as error:
        return [error]
    return []


def _failing_undo(plugin: str, error: BaseException) -> Finding:
    if isinstance(error, TeardownTimeoutError):
        message, _, remedy = str(error).rpartition("; ")
        return _unload(plugin, f"plugin {plugin!r} does not unload in time: {message}", None, remedy)
    place = place_of(error)
    at = f" at {place}" if place else ""
    text = f"plugin {plugin!r} fails while it is unloaded{at}: {summary_of(error)}"
    return _unload(plugin, text, place, "let its undo bear whatever apply() may have left")


def _no_second_life(plugin: str, error: BaseException) -> Finding:
    place = place_of(error)
    at = f" at {place}" if place else ""
    text = f"plugin {plugin!r} cannot be applied a second time, and so not reloaded; it failed{at}: {summary_of(error)}"
    remedy = "keep in apply() what belongs to one life, and undo it; or say reload_policy = 'restart'"
    return _unload(plugin, text, place, remedy)


def _left(plugin: str, leftover: Leftover) -> Finding:
    remedy = {
        "thread": "end it and join it in an undo: ctx.effect(lambda: stop)",
        "task": "start it with ctx.start_soon, which ends with the plugin",
    }[leftover.kind]
    text = f"plugin {plugin!r} leaves {leftover} behind when it is unloaded"
    return _unload(plugin, text, leftover.begun or leftover.now, remedy)


def _owner_by_place(leftover: Leftover, fibers: list[Fiber]) -> str | None:
    owner = owner_of(leftover.begun.file, fibers) if leftover.begun is not None else None
    return owner.id if owner is not None else None


def _of_first_life(leftover: Leftover, owner: str | None) -> Finding:
    if owner is not None:
        return _left(owner, leftover)
    text = f"{leftover} is left behind when all plugins are unloaded"
    remedy = "begin it in apply(), and end it and join it in an undo"
    return finding(Kind.UNLOAD, Severity.WARNING, text, place=leftover.now, remedy=remedy)


def _unload(plugin: str, text: str, place: Location | None, remedy: str) -> Finding:
    return finding(Kind.UNLOAD, Severity.WARNING, text, plugin=plugin, place=place, remedy=remedy)
