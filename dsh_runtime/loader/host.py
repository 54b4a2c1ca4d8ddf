"""The host: a kernel with the host's own services, and the plugins that a config names.

Starting is all or nothing: every plugin that must be active is, or :class:`HostError` says of each one that is not
which, why and what to do.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias

import trio
from attrs import define, field, frozen
from dsh_hookspecs import HarnessError

from dsh_runtime.core.context import Context
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.kernel import open_kernel
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.plugins import PluginSpec, read_plugin
from dsh_runtime.loader.blame import place_of, summary_of
from dsh_runtime.loader.code_mode import mount_code_mode, presentation_problems, runs_programs
from dsh_runtime.loader.errors import ConfigProblem, LoaderError, PluginLoadError
from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.model import NO_TRACE, HostConfig, PluginRow, Trace
from dsh_runtime.loader.plugin_config import build_config
from dsh_runtime.loader.record import RECORD, keeps_record, record_problem
from dsh_runtime.loader.resolve import PluginNotFoundError, check_no_tool, resolve_plugin
from dsh_runtime.loader.start import StartWatch, settle_within, too_late
from dsh_runtime.services.approval.service import ApprovalSettings
from dsh_runtime.services.approval.service import install as install_approval
from dsh_runtime.services.prompt.service import install as install_prompt
from dsh_runtime.tools.machine import ToolSettings
from dsh_runtime.tools.runtime import install

if TYPE_CHECKING:
    from dsh_runtime.loader.reload.reloader import Reloader

_log = logging.getLogger("dsh.host")

ConfigSource: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | HostConfig | None"


class HostError(LoaderError):
    """A host cannot start: a plugin that must be active is not."""


@frozen(eq=False)
class RowConfig:
    """The config of a row, with what is known about where its values stand."""

    values: Mapping[str, Any]
    owner: str
    trace: Trace = NO_TRACE


@frozen(eq=False)
class LoadedPlugin:
    """One plugin that the host was told to load: its row (``None`` for an object), its fiber, or why it has none."""

    id: str
    row: PluginRow | None
    fiber: Fiber | None = None
    error: BaseException | None = None


@define(eq=False)
class Host:
    """A running host. ``ctx`` is its root context; ``plugins`` is what it was told to load, in order.

    ``config`` and ``plugins`` are those in force: a reload changes them.
    """

    ctx: Context
    config: HostConfig
    plugins: list[LoadedPlugin] = field(factory=list)
    #: When the host was opened, on the clock of files: what is newer has not been loaded.
    opened_at: int = field(factory=time.time_ns)
    #: The folder that relative paths of the config start from, whatever a plugin makes of the current one.
    home: str = field(factory=lambda: _current_folder() or "")
    #: Below which position the rows of the config stand.
    block: int = 0
    _reload: Reloader | None = None

    def file_at(self, name: str) -> str:
        """A file as the config names it, as an absolute path."""
        return os.path.join(self.home, name)

    def file_now(self, name: str) -> str:
        """The same file as it can be opened now: in the same words, unless the current folder is not what it was."""
        return name if _current_folder() == self.home else self.file_at(name)

    def path_of(self, row: int) -> tuple[int, ...]:
        """The position of a row of the config, by its number."""
        return self.block, row

    @property
    def reload(self) -> Reloader:
        """Puts new versions of plugins, and edits of the config, in force while the host runs."""
        from dsh_runtime.loader.reload.reloader import Reloader

        if self._reload is None:
            self._reload = Reloader(self)
        return self._reload

    @property
    def settings(self) -> Any:
        """The ``[host]`` settings."""
        return self.config.host


def _current_folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def configure(spec: PluginSpec, config: Any) -> Any:
    """The config object that a plugin gets: checked against its ``Config``, or as it is if it declares none."""
    row = config if isinstance(config, RowConfig) else RowConfig(config, spec.name)
    if spec.config_type is None and spec.apply_takes_config:
        return row.values
    return build_config(spec.config_type, row.values, owner=row.owner, trace=row.trace)


class open_host:  # noqa: N801  # used like a function: ``async with open_host(…) as host``
    """Open a host for the body of an ``async with``, under trio.

    ``config`` is the path of a ``dsh.toml``, a mapping of the same shape, or ``None``; ``plugins`` are plugin objects,
    loaded after those of the config, in order. Raises :class:`ConfigError` or :class:`HostError` with every problem
    that was found. At the end everything is unwound, last first.

    With ``watchdog``, or where the config states the setting, plugins that hold the event loop or leave a thread behind
    are named in the log.
    """

    def __init__(
        self, config: ConfigSource = None, *, plugins: Iterable[Any] = (), strict: bool = True, watchdog: bool = False
    ) -> None:
        self._source = config
        self._objects = tuple(plugins)
        self._strict = strict
        self._watchdog = watchdog
        self._around = contextlib.AsyncExitStack()
        self._kernel: open_kernel

    async def __aenter__(self) -> Host:
        _check_trio()
        config = self._source if isinstance(self._source, HostConfig) else load_config(self._source or {})
        settings = config.host
        self._kernel = open_kernel(configure=configure, teardown_timeout=settings.teardown_timeout)
        ctx = await self._kernel.__aenter__()
        try:
            return await self._start(ctx, config)
        except BaseException as error:
            await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def _start(self, ctx: Context, config: HostConfig) -> Host:
        settings = config.host
        install(ctx, tool_settings(config))
        install_approval(ctx, ApprovalSettings(settings.approval, settings.approval_timeout))
        install_prompt(ctx)
        host = Host(ctx, config)
        refused = {} if config.pins is None else _refused_by_pins(config, strict=self._strict)
        watch = StartWatch(ctx.fiber.kernel)
        with watch.telling():
            if keeps_record(config):
                host.plugins.append(_mount_record(ctx, config))
            if runs_programs(config):
                fibers = mount_code_mode(ctx, settings.code)
                host.plugins += [LoadedPlugin(name, None, fiber) for name, fiber in fibers.items()]
            host.block = ctx.fiber.next_seq()
            for number, row in enumerate(config.rows):
                if row.enabled:
                    with watch.importing(row.id):
                        plugin = _mount_row(ctx, row, host.path_of(number), refused.get(row.id))
                    host.plugins.append(plugin)
            host.plugins.extend(_mount_object(ctx, plugin) for plugin in self._objects)
            await self._start_watchdog(host)
            limit = _limit(config, "start_timeout")
            late = await settle_within(ctx.fiber.kernel, limit, all_optional=not self._strict)
        if late:
            raise HostError(_too_late(host, late))
        problems = [problem for plugin in host.plugins for problem in problems_of(plugin, config)]
        problems += presentation_problems(config)
        if problems and self._strict:
            raise HostError(problems)
        if settings.reload:
            from dsh_runtime.loader.autoreload.task import start_reloading

            start_reloading(host)
        return host

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._kernel.__aexit__(kind, error, trace)
        finally:
            await self._around.aclose()

    async def _start_watchdog(self, host: Host) -> None:
        limit = host.settings.watchdog
        if limit is not None and (self._watchdog or ("host", "watchdog") in host.config.trace.places):
            from dsh_runtime.loader.watchdog.watch import watching

            await self._around.enter_async_context(watching(host.ctx.fiber.kernel, limit))


def _check_trio() -> None:
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        raise RuntimeError("open_host needs trio: run it with trio.run, not with asyncio or by hand") from None


def tool_settings(config: HostConfig) -> ToolSettings:
    """The settings of the pipeline."""
    settings = config.host
    return ToolSettings(
        max_depth=settings.max_depth,
        policy_timeout=_limit(config, "policy_timeout"),
        threads=settings.threads,
        drain_timeout=settings.drain_timeout,
        reload_wait=settings.reload_wait,
        presentation=settings.presentation,
    )


def _limit(config: HostConfig, name: str) -> float | None:
    """A limit that is stated, else its default on a host with a config file, else none: the bare API has no clocks."""
    stated = ("host", name) in config.trace.places
    return getattr(config.host, name) if stated or config.sources else None


def _too_late(host: Host, late: list[Fiber]) -> list[ConfigProblem]:
    origins = {plugin.fiber: plugin.row.origin for plugin in host.plugins if plugin.row is not None}
    limit = host.config.host.start_timeout
    return [ConfigProblem((), too_late(fiber, limit), origins.get(fiber)) for fiber in late]


def _mount_record(ctx: Context, config: HostConfig) -> LoadedPlugin:
    """Mount the session log as the host's own plugin."""
    from dsh_runtime.loader.recorder import host_sessions

    return LoadedPlugin(RECORD, None, ctx.plugin(host_sessions(config), id=RECORD))


def _refused_by_pins(config: HostConfig, *, strict: bool) -> dict[str, PluginLoadError]:
    """The rows whose code is not what is pinned, looked at before the code of any plugin runs."""
    from dsh_runtime.loader.pinned import refusals, stray_pins

    refused: dict[str, PluginLoadError] = {**refusals(config)}
    must_be = [row for row in config.rows if row.id in refused and not row.optional]
    problems = [problem for row in must_be for problem in refused[row.id].problems] + stray_pins(config)
    if problems and strict:
        raise HostError(problems)
    return refused


def config_of(row: PluginRow) -> RowConfig:
    """The config of a row as a fiber is mounted with it."""
    return RowConfig(row.config, row.id, row.trace.below("config"))


def _mount_row(
    ctx: Context, row: PluginRow, path: tuple[int, ...], refusal: PluginLoadError | None = None
) -> LoadedPlugin:
    """Import and mount what a row names; what goes wrong is kept, so that all problems are told at once."""
    try:
        if refusal is not None:
            raise refusal
        plugin = resolve_plugin(row)
        read_plugin(plugin)
        kernel = ctx.fiber.kernel
        fiber = kernel.mount(ctx, plugin, config_of(row), fiber_id=row.id, optional=row.optional, path=path)
    except Exception as error:
        if row.optional:
            _log.warning("optional plugin %r is not loaded: %s", row.id, error, extra={"dsh_failed": row.id})
        return LoadedPlugin(row.id, row, error=error)
    return LoadedPlugin(row.id, row, fiber)


def _mount_object(ctx: Context, plugin: Any) -> LoadedPlugin:
    """Mount a plugin object; a pair is an object and its config."""
    config = None
    if isinstance(plugin, tuple) and len(plugin) == 2:
        plugin, config = plugin
    try:
        check_no_tool(plugin)
    except PluginNotFoundError as error:
        raise HostError([ConfigProblem((), str(error))]) from None
    fiber = ctx.plugin(plugin, config)
    return LoadedPlugin(fiber.id, None, fiber)


def problems_of(plugin: LoadedPlugin, config: HostConfig) -> list[ConfigProblem]:
    """Why a plugin that must be active is not; nothing for one that is, or that is optional."""
    error = plugin.fiber.error if plugin.fiber is not None else None
    if plugin.id == RECORD and isinstance(error, HarnessError):
        return [record_problem(config, error)]
    if plugin.row is not None and plugin.row.optional:
        return []
    return why_not_active(plugin)


def why_not_active(plugin: LoadedPlugin) -> list[ConfigProblem]:
    """Why a plugin is not active, with what to do; nothing for one that is."""
    origin = plugin.row.origin if plugin.row is not None else None
    fiber = plugin.fiber
    error = plugin.error or (fiber.error if fiber is not None else None)
    if isinstance(error, LoaderError):
        return list(error.problems)
    if error is not None:
        place = place_of(error)
        where = f" at {place}" if place is not None else ""
        text = f"plugin {plugin.id!r} failed{where}: {summary_of(error)}{remedy_for(error)}"
        return [ConfigProblem((), text, origin)]
    if fiber is None or fiber.state is State.ACTIVE:
        return []
    return [ConfigProblem((), waiting_text(fiber), origin)]


def remedy_for(error: BaseException) -> str:
    """What to do about an error of a plugin's code, as the end of a message."""
    if isinstance(error, (SystemExit, KeyboardInterrupt)):
        return "; a plugin cannot end the host: raise an error that says what is wrong"
    # What the host raises on purpose says itself what to do.
    return "" if isinstance(error, HarnessError) else "; mend it, or remove it from the config"


def waiting_text(fiber: Fiber) -> str:
    """What a fiber waits for, and what to do."""
    names = ", ".join(map(repr, fiber.missing)) or "a turn"
    near = [other for name in fiber.missing for other in fiber.kernel.near_services(name)]
    circle = fiber.kernel.circle_of(fiber)
    if circle:
        return (
            f"plugin {fiber.id!r} waits for the service {names} in a circle: {' -> '.join(circle)}; "
            "make one of the services optional in inject"
        )
    return f"plugin {fiber.id!r} waits for the service {names}, which nobody provides; {_wanted(near)}"


def _wanted(near: list[str]) -> str:
    return f"did you mean {' and '.join(map(repr, near))}?" if near else "add a plugin that does"
