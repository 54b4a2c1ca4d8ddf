"""What there is of plugins: those that the config names, with their children, and those that are merely installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

from dsh_runtime.loader.blame import summary_of
from dsh_runtime.loader.discover import AmbiguousNameError, InstalledPlugin, find_installed, installed_plugins
from dsh_runtime.loader.host import Host, LoadedPlugin, why_not_active
from dsh_runtime.loader.model import PluginRow
from dsh_runtime.loader.target import BadUseError, FileTarget, NameTarget, parse_use

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber


@frozen
class PluginNode:
    """One plugin of the tree. ``order`` counts from 1; ``source`` is its wheel, or the file it stands in."""

    order: str
    id: str
    state: str
    source: str | None = None
    wheel: str | None = None
    version: str | None = None
    why: str | None = None
    children: list[PluginNode] = []  # noqa: RUF008 - never changed

    def document(self) -> dict[str, Any]:
        """The node as JSON."""
        return asdict(self)


def survey_plugins(host: Host) -> list[PluginNode]:
    """The plugins of the config in its order, disabled ones in their place."""
    loaded = {plugin.id: plugin for plugin in host.plugins if plugin.row is not None}
    rows = enumerate(host.config.rows, start=1)
    return [_node(str(number), row, loaded.get(row.id)) for number, row in rows]


@frozen
class EntryPoint:
    """An entry point of a wheel, and the ids of the enabled plugins that use it."""

    name: str
    value: str
    ids: list[str] = []  # noqa: RUF008 - never changed


@frozen
class InstalledWheel:
    """An installed wheel that has plugins."""

    name: str
    version: str
    entries: list[EntryPoint]

    def document(self) -> dict[str, Any]:
        """The wheel as JSON."""
        entries = [{**asdict(entry), "enabled": bool(entry.ids)} for entry in self.entries]
        return {"name": self.name, "version": self.version, "entry_points": entries}


def survey_installed(host: Host) -> list[InstalledPlugin]:
    """The installed plugins that no enabled row of the config uses."""
    used = _used(host.config.rows)
    return [plugin for plugin in installed_plugins() if plugin not in used]


def survey_wheels(rows: Iterable[PluginRow]) -> list[InstalledWheel]:
    """The installed wheels that have plugins, and which of these the enabled rows of a config use."""
    used = _used(rows)
    wheels: dict[tuple[str, str], list[EntryPoint]] = {}
    for plugin in installed_plugins():
        entry = EntryPoint(plugin.name, plugin.value, used.get(plugin, []))
        wheels.setdefault((plugin.distribution, plugin.version), []).append(entry)
    return [InstalledWheel(name, version, wheels[name, version]) for name, version in sorted(wheels)]


def _used(rows: Iterable[PluginRow]) -> dict[InstalledPlugin, list[str]]:
    """The installed plugins that enabled rows use, with the ids of these rows."""
    used: dict[InstalledPlugin, list[str]] = {}
    for row in rows:
        if row.enabled and (found := _installed_of(row)) is not None:
            used.setdefault(found, []).append(row.id)
    return used


def _node(order: str, row: PluginRow, plugin: LoadedPlugin | None) -> PluginNode:
    found = _installed_of(row)
    return PluginNode(
        order=order,
        id=row.id,
        state=_state_of(plugin),
        source=f"{found.distribution} {found.version}" if found else _file_of(row) or row.use,
        wheel=found.distribution if found else None,
        version=found.version if found else None,
        why=_why(plugin),
        children=list(_children(order, plugin.fiber)) if plugin is not None and plugin.fiber is not None else [],
    )


def _children(order: str, fiber: Fiber) -> Iterator[PluginNode]:
    for number, child in enumerate(sorted(fiber.children, key=lambda child: child.path), start=1):
        place = f"{order}.{number}"
        yield PluginNode(
            order=place,
            id=child.id,
            state=str(child.state),
            why=summary_of(child.error) if child.error is not None else None,
            children=list(_children(place, child)),
        )


def _state_of(plugin: LoadedPlugin | None) -> str:
    if plugin is None:
        return "disabled"
    return str(plugin.fiber.state) if plugin.fiber is not None else "not loaded"


def _why(plugin: LoadedPlugin | None) -> str | None:
    if plugin is None:
        return "enabled = false"
    return "; ".join(map(str, why_not_active(plugin))) or None


def _installed_of(row: PluginRow) -> InstalledPlugin | None:
    """The entry point that a row uses, by its name or by what it points to."""
    try:
        target = parse_use(row.use, row.directory)
        if isinstance(target, NameTarget) and (found := find_installed(target.name)) is not None:
            return found
    except (AmbiguousNameError, BadUseError):
        return None
    return next((plugin for plugin in installed_plugins() if plugin.value == row.use), None)


def _file_of(row: PluginRow) -> str | None:
    try:
        target = parse_use(row.use, row.directory)
    except BadUseError:
        return None
    return str(target.file) if isinstance(target, FileTarget) else None
