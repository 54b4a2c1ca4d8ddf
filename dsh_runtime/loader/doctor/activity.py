"""Why a plugin is not active: what ``why_not_active`` says, told apart by kind, with the place and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dsh_hookspecs import HarnessError

from dsh_runtime.core.errors import ClashError, HookError, HookspecsVersionError
from dsh_runtime.core.lifecycle import State
from dsh_runtime.loader.blame import place_of
from dsh_runtime.loader.discover import AmbiguousNameError
from dsh_runtime.loader.errors import ConfigProblem, LoaderError, Location
from dsh_runtime.loader.host import Host, LoadedPlugin, why_not_active
from dsh_runtime.loader.model import PluginRow
from dsh_runtime.loader.pin import PinMismatchError
from dsh_runtime.loader.record import RECORD, record_problem
from dsh_runtime.loader.resolve import PluginNotFoundError
from dsh_runtime.loader.start import StartTimeoutError
from dsh_runtime.loader.target import BadUseError

from .finding import Finding, Kind, Severity, finding
from .offers import Offers


def not_active(host: Host, offers: Offers) -> Iterator[Finding]:
    """Every plugin that is not active, children and disabled rows included, in the order of the config."""
    loaded = {plugin.id: plugin for plugin in host.plugins}
    for plugin in host.plugins:
        if plugin.row is None:
            yield from _of_host(host, plugin, offers)
    for row in host.config.rows:
        if row.id in loaded:
            yield from _of_plugin(loaded[row.id], offers)
        else:
            yield _disabled(row)


def _of_host(host: Host, plugin: LoadedPlugin, offers: Offers) -> Iterator[Finding]:
    """What the host has brought itself: its record."""
    error = _error_of(plugin)
    if plugin.id == RECORD and isinstance(error, HarnessError):
        problem = record_problem(host.config, error)
        yield finding(
            Kind.HOST, Severity.ERROR, problem.message, plugin=RECORD, config=problem.location, path=problem.path
        )
    else:
        yield from _of_plugin(plugin, offers)


def _of_plugin(plugin: LoadedPlugin, offers: Offers) -> Iterator[Finding]:
    error = _error_of(plugin)
    kind = _kind_of(plugin, error)
    for problem in why_not_active(plugin):
        yield _finding(plugin, kind, problem, error, offers)
    yield from _of_children(plugin, offers)


def _of_children(plugin: LoadedPlugin, offers: Offers) -> Iterator[Finding]:
    children = sorted(plugin.fiber.children, key=lambda fiber: fiber.path) if plugin.fiber is not None else []
    for fiber in children:
        yield from _of_plugin(LoadedPlugin(fiber.id, plugin.row, fiber), offers)


def _finding(
    plugin: LoadedPlugin, kind: Kind, problem: ConfigProblem, error: BaseException | None, offers: Offers
) -> Finding:
    if kind is Kind.SERVICE and plugin.fiber is not None and (circle := offers.circle(plugin.fiber)):
        return _round(plugin, problem, circle)
    missing = plugin.fiber.missing if kind is Kind.SERVICE and plugin.fiber is not None else []
    return finding(
        kind,
        _severity_of(plugin),
        problem.message,
        plugin=plugin.id,
        place=_place_of(plugin, kind, error),
        config=problem.location,
        path=problem.path,
        remedy=offers.remedy(missing) or _meant(problem.message),
    )


def _round(plugin: LoadedPlugin, problem: ConfigProblem, circle: Sequence[str]) -> Finding:
    """A circle that the host cannot see, since ``apply`` alone says what is provided."""
    names = ", ".join(map(repr, plugin.fiber.missing)) if plugin.fiber is not None else ""
    text = f"plugin {plugin.id!r} waits for the service {names} in a circle: {' -> '.join(circle)}"
    severity = _severity_of(plugin)
    return finding(Kind.CIRCLE, severity, text, plugin=plugin.id, config=problem.location, path=problem.path)


def _meant(message: str) -> str | None:
    """The name that the host thinks was meant, where its message has it in passing."""
    found = re.search(r"\((did you mean '[^']+'\?)\)", message)
    return found[1] if found is not None else None


def _severity_of(plugin: LoadedPlugin) -> Severity:
    optional = (plugin.row is not None and plugin.row.optional) or (plugin.fiber is not None and plugin.fiber.optional)
    return Severity.WARNING if optional else Severity.ERROR


def _error_of(plugin: LoadedPlugin) -> BaseException | None:
    return plugin.error or (plugin.fiber.error if plugin.fiber is not None else None)


def _kind_of(plugin: LoadedPlugin, error: BaseException | None) -> Kind:
    if error is None:
        fiber = plugin.fiber
        return Kind.CIRCLE if fiber is not None and fiber.kernel.circle_of(fiber) else Kind.SERVICE
    if isinstance(error, ClashError):
        return Kind.SHADOWED if " tool " in str(error) else Kind.CLASH
    cause = error.__cause__
    kinds: list[tuple[BaseException | None, type[BaseException], Kind]] = [
        (error, HookspecsVersionError, Kind.VERSION),
        (error, PinMismatchError, Kind.PIN),
        (error, HookError, Kind.HOOK),
        (error, StartTimeoutError, Kind.LATE),
        (cause, AmbiguousNameError, Kind.ENTRY_POINT),
        (cause, PluginNotFoundError, Kind.NOT_FOUND),
        (cause, BadUseError, Kind.NOT_FOUND),
    ]
    known = next((kind for found, cls, kind in kinds if isinstance(found, cls)), None)
    if known is None and isinstance(error, LoaderError):
        return Kind.IMPORT if plugin.error is not None else Kind.CONFIG
    return known or Kind.FAILED


def _place_of(plugin: LoadedPlugin, kind: Kind, error: BaseException | None) -> Location | None:
    """The line of the author's that matters; for a hook that is no hook, its function's."""
    if error is None or kind is Kind.CONFIG:
        return None
    place = place_of(error.__cause__ if kind is Kind.IMPORT and error.__cause__ is not None else error)
    if place is None and kind is Kind.HOOK and plugin.fiber is not None:
        codes = (getattr(fn, "__code__", None) for name, fn in plugin.fiber.spec.hooks.items() if name in str(error))
        code = next(filter(None, codes), None)
        return Location(code.co_filename, code.co_firstlineno) if code is not None else None
    return place


def _disabled(row: PluginRow) -> Finding:
    where = row.trace.exact(("enabled",)) or row.origin
    return finding(
        Kind.DISABLED, Severity.NOTE, f"plugin {row.id!r} is disabled (enabled = false)", plugin=row.id, config=where
    )


def is_active(plugin: LoadedPlugin) -> bool:
    """Whether a plugin is up."""
    return plugin.fiber is not None and plugin.fiber.state is State.ACTIVE
