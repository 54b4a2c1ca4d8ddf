"""A real host for a test, with a recorder in front of every policy and an agent to call as."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import trio
from attrs import define, field
from dsh_hookspecs import AbortController, AbortSignal, Context, ToolExecutionResult

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.loader.host import Host, open_host
from dsh_runtime.testing.clock import VirtualClock
from dsh_runtime.testing.recorder import Recorder
from dsh_runtime.tools.definition import ToolExecutionInput

#: A plugin object, a pair of one and its config, or the name of an installed one.
PluginLike: TypeAlias = Any


@define
class House:
    """A host that is open for one test."""

    host: Host
    recorder: Recorder
    agent: Any
    log_path: Path | None
    _calls: int = field(default=0, init=False)

    @property
    def ctx(self) -> Context:
        """The host's root context."""
        return self.host.ctx

    def fiber(self, plugin_id: str) -> Fiber:
        """The fiber of a plugin."""
        known = {loaded.id: loaded.fiber for loaded in self.host.plugins}
        fiber = known.get(plugin_id)
        if fiber is None:
            raise LookupError(f"no plugin {plugin_id!r} is loaded; loaded: {', '.join(known)}")
        return fiber

    def input(
        self, name: str, arguments: Any = None, *, signal: AbortSignal | None = None, agent: Any = ...
    ) -> ToolExecutionInput:
        """One call, with an id of its own."""
        self._calls += 1
        return ToolExecutionInput(
            call_id=f"test-{self._calls}",
            name=name,
            arguments={} if arguments is None else arguments,
            signal=signal if signal is not None else AbortController().signal,
            agent=self.agent if agent is ... else agent,
        )

    async def call(self, name: str, arguments: Any = None, **more: Any) -> ToolExecutionResult:
        """Make one call through the whole pipeline."""
        result: ToolExecutionResult = await self.host.ctx.tools.execute(self.input(name, arguments, **more))
        return result

    async def on_record(self) -> list[dict[str, Any]]:
        """Every event of the log: its type and payload. The host must have been opened with ``log``."""
        if self.log_path is None:
            raise LookupError("the host keeps no log; open it with log=<a path>")
        return await trio.to_thread.run_sync(_read, self.log_path)


def _read(path: Path) -> list[dict[str, Any]]:
    from dsh_runtime.services.sessions.reading import Reader

    with Reader(path) as reader:
        return [{"type": event.type, "payload": dict(event.payload)} for event in reader.events()]


@asynccontextmanager
async def open_house(
    *plugins: PluginLike, config: Mapping[str, Any] | None = None, log: Path | None = None
) -> AsyncIterator[House]:
    """Open a host for the body of a test.

    ``plugins`` stand in the given order, behind those of ``config``; each is a plugin object or module, a pair of one
    and its config, or the name of an installed one. ``log`` is the file of a session log; without it there is none.
    Where the test runs under a :class:`VirtualClock`, time moves on whenever the host has nothing to do.
    """
    recorder = Recorder()
    async with trio.open_nursery() as nursery:
        clock = trio.lowlevel.current_clock()
        if isinstance(clock, VirtualClock):
            await nursery.start(clock.keep)
        async with open_host(_document(config, log), plugins=[recorder, *map(_loadable, plugins)]) as host:
            if isinstance(clock, VirtualClock):
                clock.limiters.append(host.ctx.tools.machine.limiter)
            scope = host.ctx.scope()
            sessions = host.ctx.get("sessions")
            session = await sessions.open_session(scope.key, label="test", front_door="test") if sessions else None
            try:
                yield House(host, recorder, scope.key, log)
            finally:
                with trio.CancelScope(shield=True):
                    await scope.dispose()
                    if session is not None:
                        await session.close()
        nursery.cancel_scope.cancel()


def _document(config: Mapping[str, Any] | None, log: Path | None) -> dict[str, Any]:
    document = dict(config or {})
    kept = {"path": str(log)} if log is not None else {"enabled": False}
    document["host"] = {"log": kept, **document.get("host", {})}
    return document


def _loadable(plugin: PluginLike) -> Any:
    """What ``open_host`` takes: an installed plugin is imported by its name."""
    inner, config = plugin if isinstance(plugin, tuple) else (plugin, None)
    if isinstance(inner, str):
        from dsh_runtime.loader.model import PluginRow
        from dsh_runtime.loader.resolve import resolve_plugin

        inner = resolve_plugin(PluginRow(id=inner, use=inner))
    return (inner, config) if config is not None else inner
