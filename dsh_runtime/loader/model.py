"""The merged, checked configuration: plain frozen values that remember where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from .errors import KeyPath, Location
from .nodes import Leaf, Table, walk
from .settings import HostSettings

if TYPE_CHECKING:
    from .pin import Pin

__all__ = ["NO_TRACE", "HostConfig", "HostSettings", "PluginRow", "Trace"]


@frozen
class Trace:
    """Where each value of a config stands, and which of them are secret; paths count from ``root``."""

    places: Mapping[KeyPath, Location | None] = field(factory=dict, repr=False)
    secrets: frozenset[KeyPath] = field(default=frozenset(), repr=False)
    root: KeyPath = ()

    def below(self, *path: str | int) -> Trace:
        """The same knowledge, for the part of the config at ``path``."""
        return evolve(self, root=(*self.root, *path))

    def exact(self, path: KeyPath = ()) -> Location | None:
        """The place of the value at ``path``; ``None`` when the config does not state it."""
        return self.places.get((*self.root, *path))

    def where(self, path: KeyPath = ()) -> Location | None:
        """The place of the value at ``path``, or else of the closest thing around it."""
        full = (*self.root, *path)
        ends = range(len(full), -1, -1)
        return next((place for end in ends if (place := self.places.get(full[:end]))), None)

    def is_secret(self, path: KeyPath = ()) -> bool:
        """Whether the value at ``path`` came from outside the file, contains something that did, or is inside one."""
        full = (*self.root, *path)
        return full in self._touched or any(full[:end] in self.secrets for end in range(len(full)))

    _touched: frozenset[KeyPath] = field(init=False, repr=False, eq=False)

    @_touched.default
    def _find_touched(self) -> frozenset[KeyPath]:
        return frozenset(path[:end] for path in self.secrets for end in range(len(path) + 1))


NO_TRACE = Trace()


@frozen(kw_only=True)
class PluginRow:
    """One ``[[plugin]]``: what to load, under which id, with which config.

    Two rows are equal when they ask for the same thing, wherever they stand. ``directory`` is where a relative file in
    ``use`` starts.
    """

    id: str
    use: str
    config: Mapping[str, Any] = field(factory=dict, repr=False)
    enabled: bool = True
    optional: bool = False
    directory: Path = field(factory=Path.cwd)
    origin: Location | None = field(default=None, eq=False)
    trace: Trace = field(default=NO_TRACE, eq=False, repr=False)


@frozen(kw_only=True)
class HostConfig:
    """A whole configuration.

    ``sources`` are the config files in the order they were merged, ``value_files`` the files read by ``${file:…}``.
    ``pins`` are those of the plugins by their ids; ``None`` if the config has no table of them.
    """

    rows: tuple[PluginRow, ...] = ()
    host: HostSettings = field(factory=HostSettings)
    pins: Mapping[str, Pin] | None = None
    sources: tuple[str, ...] = ()
    value_files: tuple[str, ...] = ()
    trace: Trace = field(default=NO_TRACE, eq=False, repr=False)

    def where(self, path: KeyPath) -> Location | None:
        """The file and line of the value at ``path``, or of the closest thing around it."""
        return self.trace.where(path)

    def is_secret(self, path: KeyPath) -> bool:
        """Whether the value at ``path`` must be masked wherever it is shown."""
        return self.trace.is_secret(path)


def trace_of(tree: Table) -> Trace:
    """Collect what the tree knows about its values."""
    places: dict[KeyPath, Location | None] = {}
    secrets = set()
    for path, node in walk(tree):
        places[path] = node.where
        if isinstance(node, Leaf) and node.secret:
            secrets.add(path)
    return Trace(places, frozenset(secrets))
