"""A real host for a test, with a recorder in front of every policy and an agent to call as."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import trio
from attrs import define, field
from dsh_hookspecs import AbortController, AbortSignal, Context, ToolExecutionResult

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.loader.host import Host, open_host
from dsh_runtime.testing.calls import Call, CallLike
from dsh_runtime.testing.clock import VirtualClock
from dsh_runtime.testing.recorder import Recorder
from dsh_runtime.testing.stories import story_of
from dsh_runtime.tools.definition import ToolExecutionInput
from dsh_runtime.tools.failures import sole

#: A plugin object or module, a pair of one and its config, or the name of an installed one.
PluginLike: TypeAlias = Any


class Running:
    """A call that is under way."""

    def __init__(self) -> None:
        self._controller = AbortController()
        self._ended = trio.Event()
        self._result: ToolExecutionResult | None = None

    @property
    def signal(self) -> AbortSignal:
        """The signal that the call was made with."""
        return self._controller.signal

    @property
    def ended(self) -> bool:
        """Whether it has come to rest."""
        return self._ended.is_set()

    def abort(self, reason: str = "aborted by the test") -> None:
        """Abort it, as its caller would."""
        self._controller.abort(reason)

    async def result(self) -> ToolExecutionResult:
        """Its result, as soon as there is one."""
        await self._ended.wait()
        if self._result is None:
            raise LookupError("the call was cancelled before it had a result")
        return self._result

    async def run(self, trial: Trial, call: CallLike, more: Mapping[str, Any]) -> None:
        """Make the call."""
        try:
            self._result = await trial.call(Call(*call), signal=self.signal, **more)
        finally:
            self._ended.set()


@define(eq=False)
class Trial:
    """A host that is open for one test."""

    host: Host
    recorder: Recorder
    agent: Any
    #: The ids of the plugins that it was opened with, in order.
    ids: tuple[str, ...]
    log_path: Path | None
    _nursery: trio.Nursery
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
        self, call: str | CallLike, arguments: Any = None, *, signal: AbortSignal | None = None, agent: Any = ...
    ) -> ToolExecutionInput:
        """What the host takes for a call, with an id of its own."""
        name, given = Call(call, {} if arguments is None else arguments) if isinstance(call, str) else call
        self._calls += 1
        return ToolExecutionInput(
            call_id=f"test-{self._calls}",
            name=name,
            arguments=given,
            signal=signal if signal is not None else AbortController().signal,
            agent=self.agent if agent is ... else agent,
        )

    async def call(
        self, call: str | CallLike, arguments: Any = None, *, signal: AbortSignal | None = None, agent: Any = ...
    ) -> ToolExecutionResult:
        """Make one call through the whole pipeline: ``call("greet", {"name": "Ada"})``, or of a :class:`Call`."""
        made = self.input(call, arguments, signal=signal, agent=agent)
        result: ToolExecutionResult = await self.host.ctx.tools.execute(made)
        return result

    def begin(self, call: str | CallLike, arguments: Any = None, *, agent: Any = ...) -> Running:
        """Begin a call and go on: to abort it, or to make others beside it. The trial waits for it at its end."""
        running = Running()
        made = Call(call, {} if arguments is None else arguments) if isinstance(call, str) else call
        self._nursery.start_soon(running.run, self, made, {"agent": agent})
        return running

    async def batch(
        self, calls: Iterable[CallLike], *, max_parallel: int = 10, signal: AbortSignal | None = None
    ) -> list[ToolExecutionResult]:
        """Make several calls as a model's batch."""
        shared = signal if signal is not None else AbortController().signal
        made = [self.input(call, signal=shared) for call in calls]
        return list(await self.host.ctx.tools.execute_batch(made, max_parallel=max_parallel))

    def story(self, result: ToolExecutionResult) -> list[Mapping[str, Any]]:
        """Who was asked about a call and what each one answered, in order."""
        return story_of(result)

    async def on_record(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The events of the log, all or of one type: ``type`` and ``payload``. The trial has to keep a ``log``."""
        if self.log_path is None:
            raise LookupError("the host keeps no log; open the trial with log=True")
        events = await trio.to_thread.run_sync(_read, self.log_path)
        return [event for event in events if kind is None or event["type"] == kind]


def _read(path: Path) -> list[dict[str, Any]]:
    from dsh_runtime.services.sessions.reading import Reader

    with Reader(path) as reader:
        return [{"type": event.type, "payload": dict(event.payload)} for event in reader.events()]


@asynccontextmanager
async def open_trial(
    *plugins: PluginLike, config: Mapping[str, Any] | None = None, log: Path | bool = False
) -> AsyncIterator[Trial]:
    """Open a host for the body of a test.

    ``plugins`` stand in the given order, behind those of ``config``; each is a plugin object or module, a pair of one
    and its config, or the name of an installed one. With ``log`` it keeps a session log, in that file or (``True``) in
    a temporary one; else there is none. Where the test runs under a :class:`VirtualClock`, time moves on whenever the
    host has nothing to do.
    """
    try:
        async with _opened(plugins, config, log) as trial:
            yield trial
    except BaseExceptionGroup as group:
        # The groups are those of nurseries that nobody who writes a test has opened.
        raise sole(group) from None


@asynccontextmanager
async def _opened(
    plugins: tuple[PluginLike, ...], config: Mapping[str, Any] | None, log: Path | bool
) -> AsyncIterator[Trial]:
    async with trio.open_nursery() as around:
        clock = trio.lowlevel.current_clock()
        if isinstance(clock, VirtualClock):
            await around.start(clock.keep)
        with _log_file(log) as path:
            recorder = Recorder()
            objects = [recorder, *map(loadable, plugins)]
            async with (
                open_host(_document(config, path), plugins=objects) as host,
                _agent_of(host) as agent,
                trio.open_nursery() as calls,
            ):
                ids = tuple(loaded.id for loaded in host.plugins[len(host.plugins) - len(plugins) :])
                yield Trial(host, recorder, agent, ids, path, calls)
        around.cancel_scope.cancel()


@contextlib.contextmanager
def _log_file(log: Path | bool) -> Iterator[Path | None]:
    if isinstance(log, bool):
        if not log:
            yield None
            return
        with tempfile.TemporaryDirectory(prefix="dsh-trial-") as folder:
            yield Path(folder) / "log.db"
    else:
        yield log


@asynccontextmanager
async def _agent_of(host: Host) -> AsyncIterator[Any]:
    """A scope to call for, with a session where the host keeps a log."""
    scope = host.ctx.scope()
    sessions = host.ctx.get("sessions")
    session = await sessions.open_session(scope.key, label="test", front_door="test") if sessions else None
    try:
        yield scope.key
    finally:
        with trio.CancelScope(shield=True):
            await scope.dispose()
            if session is not None:
                await session.close()


def _document(config: Mapping[str, Any] | None, log: Path | None) -> dict[str, Any]:
    document = dict(config or {})
    kept = {"path": str(log)} if log is not None else {"enabled": False}
    document["host"] = {"log": kept, **document.get("host", {})}
    return document


def loadable(plugin: PluginLike) -> Any:
    """What ``open_host`` takes: an installed plugin is imported by its name."""
    inner, config = plugin if isinstance(plugin, tuple) else (plugin, None)
    if isinstance(inner, str):
        from dsh_runtime.loader.model import PluginRow
        from dsh_runtime.loader.resolve import resolve_plugin

        inner = resolve_plugin(PluginRow(id=inner, use=inner))
    return (inner, config) if config is not None else inner
