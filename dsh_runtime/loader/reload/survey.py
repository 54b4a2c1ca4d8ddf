"""What runs, as a reload sees it: plugins, where they come from, who uses whom, and what has changed on the disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attrs import define, field, frozen

from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.staging import family, top_of
from dsh_runtime.loader.host import LoadedPlugin
from dsh_runtime.loader.model import HostConfig, PluginRow
from dsh_runtime.loader.ownership import module_of
from dsh_runtime.loader.record import RECORD

from .graph import Module, ModuleGraph, Stamp, file_of, stamp_of
from .member import Anchor, anchor_of_object, anchor_of_row
from .plan import Candidate

if TYPE_CHECKING:
    from dsh_runtime.loader.host import Host


OWN: Final = "it is the host's own"


@frozen(eq=False)
class Subject:
    """A plugin that is to run: as it is loaded now, if it is, and as its row wants it, if it has one."""

    id: str
    path: tuple[int, ...]
    loaded: LoadedPlugin | None
    row: PluginRow | None
    anchor: Anchor | None
    root: str | None

    @property
    def fiber(self) -> Fiber | None:
        """Its fiber."""
        return self.loaded.fiber if self.loaded is not None else None


def subjects_of(host: Host, config: HostConfig) -> list[Subject]:
    """The plugins of a host under a config, in order; also those that an application has mounted by itself."""
    loaded = {plugin.id: plugin for plugin in host.plugins}
    found = [
        _of_row(row, host.path_of(number), loaded.pop(row.id, None))
        for number, row in enumerate(config.rows)
        if row.enabled
    ]
    found += [_of_object(plugin) for plugin in loaded.values() if plugin.row is None and plugin.fiber is not None]
    known = {subject.fiber for subject in found} | {plugin.fiber for plugin in host.plugins}
    others = (fiber for fiber in host.ctx.fiber.children if fiber not in known)
    found += [_of_object(LoadedPlugin(fiber.id, None, fiber)) for fiber in others]
    return sorted(found, key=lambda subject: subject.path)


def _of_row(row: PluginRow, path: tuple[int, ...], loaded: LoadedPlugin | None) -> Subject:
    anchor = anchor_of_row(row)
    return Subject(row.id, path, loaded, row, anchor, anchor.module if anchor is not None else None)


def _of_object(plugin: LoadedPlugin) -> Subject:
    assert plugin.fiber is not None
    source = plugin.fiber.spec.source
    anchor, module = anchor_of_object(source), module_of(source)
    root = anchor.module if anchor is not None else module.__name__ if module is not None else None
    return Subject(plugin.id, plugin.fiber.path, plugin, None, anchor, root)


def users_of(fiber: Fiber | None) -> dict[str, str]:
    """The plugins right below the root that use a service of a fiber or of one below it, each with a name of one."""
    users: dict[str, str] = {}
    for member in family(fiber) if fiber is not None else ():
        for name in member.offered:
            for user in member.house.users(name):
                if user.uses_of(member) and top_of(user) is not fiber:
                    users.setdefault(top_of(user).id, name)
    return users


def candidate_of(subject: Subject, graph: ModuleGraph) -> Candidate:
    """A plugin as the plan sees it."""
    module = graph.modules.get(subject.root or "")
    sourced = subject.anchor is not None and (subject.row is not None or (module is not None and module.loose))
    refuses = OWN if subject.row is None and subject.id == RECORD else refusal_of(subject.fiber)
    return Candidate(subject.id, subject.root, sourced, users_of(subject.fiber), refuses)


def refusal_of(fiber: Fiber | None) -> str | None:
    """Why a plugin cannot be replaced while the host runs, if so."""
    if fiber is None or fiber.state is not State.ACTIVE:
        return None
    opted_out = next((one for one in family(fiber) if one.spec.reload_policy == "restart"), None)
    if opted_out is None:
        return None
    whose = "it" if opted_out is fiber else f"plugin {opted_out.id!r} below it"
    return f"{whose} says reload_policy = 'restart'"


@define(eq=False)
class Disk:
    """What the host knows of the files of its modules, and what has come since."""

    opened_at: int
    _listings: dict[str, frozenset[str]] = field(factory=dict)
    #: What the files were that were loaded before anybody took note: those that have not changed since.
    _first: dict[str, Stamp] = field(factory=dict)

    def dirty(self, modules: Iterable[Module], stamps: Mapping[str, Stamp]) -> Iterator[str]:
        """The modules whose file is another one now than when they were loaded."""
        for module in modules:
            if module.loose and module.file is not None:
                now, known = stamp_of(module.file), stamps.get(module.name) or self._first.get(module.name)
                if now is None or (now != known if known is not None else now[0] > self.opened_at):
                    yield module.name

    def note_first(self, roots: Iterable[str]) -> None:
        """Note what the plugins' own packages were loaded from, before anything has been reloaded."""
        for name, file, package in _own_modules(roots):
            self._note_first(name, file)
            if package:
                folder = os.path.dirname(file)
                self._listings[folder] = frozenset(
                    source
                    for source in _sources_in(folder)
                    if (stamp := stamp_of(os.path.join(folder, source))) is not None and stamp[0] <= self.opened_at
                )

    def note(self, graph: ModuleGraph, roots: Iterable[str]) -> None:
        """Note which sources stand in the folders of packages, and what the sources are that nobody has noted."""
        for module in graph.modules.values():
            if module.loose and module.file is not None:
                self._note_first(module.name, module.file)
        folders = {_folder_of(module) for module in graph.modules.values() if module.loose and module.package}
        folders |= {os.path.dirname(file) for _, file, package in _own_modules(roots) if package}
        self._listings = {folder: _sources_in(folder) for folder in folders if folder is not None}

    def _note_first(self, name: str, file: str) -> None:
        if name not in self._first:
            stamp = stamp_of(file)
            if stamp is not None and stamp[0] <= self.opened_at:
                self._first[name] = stamp

    def is_new(self, file: str) -> bool:
        """Whether a source is there that was not when its folder was last looked at."""
        folder, name = os.path.split(file)
        known = self._listings.get(folder)
        return os.path.exists(file) and (known is None or name not in known)


class Newcomers:
    """What files that nobody has loaded concern: the package that they stand in, and who would import them."""

    def __init__(self, disk: Disk, graph: ModuleGraph) -> None:
        self._disk = disk
        self._wanted: dict[str, list[tuple[str, str]]] = {}
        self._packages: dict[str | None, list[str]] = {}
        for module in graph.modules.values():
            if module.loose:
                for wanted in module.missing:
                    self._wanted.setdefault(wanted.rpartition(".")[2], []).append((wanted, module.name))
                if module.package:
                    self._packages.setdefault(_folder_of(module), []).append(module.name)

    def concerned(self, path: Path) -> Iterator[str]:
        """The modules that a new, changed or deleted file concerns."""
        if not _may_be_source(path):
            return
        file = os.path.realpath(path)
        source = os.path.dirname(file) if path.name == "__init__.py" else file
        folder, name = os.path.split(source)
        for wanted, module in self._wanted.get(name.removesuffix(".py"), ()):
            if _stands_in(folder, wanted.rpartition(".")[0]):
                yield module
        if self._disk.is_new(source):
            yield from self._packages.get(folder, ())


def _may_be_source(path: Path) -> bool:
    if not path.stem.isidentifier() or path.stem == "__pycache__":
        return False
    return path.suffix == ".py" or (path.suffix == "" and path.is_dir())


def _own_modules(roots: Iterable[str]) -> Iterator[tuple[str, str, bool]]:
    """The loaded modules of some plugins' own packages: name, file, and whether it is a package."""
    tops = {root.partition(".")[0] for root in roots}
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in tops:
            file = file_of(module)
            if file is not None and file.endswith(".py"):
                yield name, file, hasattr(module, "__path__")


def _sources_in(folder: str) -> frozenset[str]:
    """The names of the sources in a folder, and of the folders that may be packages."""
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries if _is_source(entry))
    except OSError:
        return frozenset()


def _is_source(entry: os.DirEntry[str]) -> bool:
    stem, dot, suffix = entry.name.partition(".")
    if not stem.isidentifier() or stem == "__pycache__":
        return False
    return suffix == "py" or (not dot and entry.is_dir())


def _folder_of(module: Module) -> str | None:
    return os.path.dirname(module.file) if module.file is not None else None


def _stands_in(folder: str, package: str) -> bool:
    """Whether the modules of a package, or top-level ones, are looked for in a folder."""
    try:
        folders = list(getattr(sys.modules.get(package), "__path__", ())) if package else sys.path
    except Exception:  # A namespace package whose parent is gone.
        return False
    return any(_real(one) == folder for one in folders)


def _real(folder: str) -> str | None:
    try:
        return os.path.realpath(folder)
    except OSError:  # The current folder is gone.
        return None
