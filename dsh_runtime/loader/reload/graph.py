"""Which module imports which, among the modules that are loaded: the ground for saying who depends on a file.

A module is *loose* if it can be imported afresh: Python source that is a plugin's own or stands where somebody works on
it. Everything else is *fixed*: the host's own modules, the standard library, installed libraries, C extensions.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Final, TypeAlias

from attrs import define, evolve, field, frozen

from dsh_runtime.loader.ownership import is_host, is_python

from .imports import imports_of, with_parents

#: When a file was changed, and how long it is: two versions that agree in both are taken to be the same.
Stamp: TypeAlias = tuple[int, int]
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
_HOST_PACKAGES: Final = frozenset({"dsh_runtime", "dsh_hookspecs"})


def stamp_of(file: str) -> Stamp | None:
    """The stamp of a file; ``None`` for none."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size


def file_of(module: ModuleType) -> str | None:
    """The file that a module was loaded from, as an absolute path without links; ``None`` for none."""
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) else None


def is_installed(file: str) -> bool:
    """Whether a file stands where installers put libraries."""
    return not _INSTALLED.isdisjoint(Path(file).parts)


def is_hosts(name: str) -> bool:
    """Whether a module is the host's own."""
    return name.partition(".")[0] in _HOST_PACKAGES


@frozen
class Module:
    """A loaded module: its file, the loaded modules that it imports, and what it would import if it were there."""

    name: str
    file: str | None
    loose: bool
    imports: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()
    package: bool = False


@define
class SourceCache:
    """The imports of sources, read once for each version of a file."""

    _known: dict[tuple[str, str], tuple[Stamp, frozenset[str]]] = field(factory=dict)

    def imports(self, file: str, package: str) -> frozenset[str]:
        """What a source imports as it stands on the disk."""
        stamp = stamp_of(file)
        if stamp is None:
            return frozenset()
        known = self._known.get((file, package))
        if known is None or known[0] != stamp:
            known = self._known[file, package] = stamp, imports_of(_read(file), package)
        return known[1]

    def forget_others(self, files: Collection[str | None]) -> None:
        """Keep nothing of files that no module is loaded from any more."""
        self._known = {key: known for key, known in self._known.items() if key[0] in files}


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError:
        return b""


@frozen
class ModuleGraph:
    """The modules that some plugins rest on, by name."""

    modules: Mapping[str, Module]

    def closure(self, root: str) -> frozenset[str]:
        """A module and all that it rests on, as far as it is loose, and the fixed modules at the edge."""
        return _reach({root} & self.modules.keys(), lambda name: self.modules[name].imports)

    def resting_on(self, names: Iterable[str], among: Collection[str]) -> frozenset[str]:
        """Those of some modules that are, or import, any of ``names``, directly or not."""
        importers: dict[str, set[str]] = {}
        for name in among:
            for imported in self.modules[name].imports:
                importers.setdefault(imported, set()).add(name)
        return _reach(set(names), lambda name: importers.get(name, ())) & frozenset(among)

    def by_file(self) -> dict[str, list[Module]]:
        """The modules by the files that they were loaded from."""
        files: dict[str, list[Module]] = {}
        for module in self.modules.values():
            if module.file is not None:
                files.setdefault(module.file, []).append(module)
        return files


class GraphReading:
    """Reads the graph below the root modules of plugins, among the modules that are ``loaded``."""

    def __init__(self, roots: Iterable[str], loaded: Mapping[str, ModuleType], cache: SourceCache) -> None:
        self._roots = frozenset(roots)
        self._tops = {root.partition(".")[0] for root in self._roots}
        self._loaded = loaded
        self._cache = cache
        self._found: dict[str, Module] = {}
        self._waiting = [root for root in self._roots if root in self._loaded]

    def read(self, seconds: float = math.inf) -> ModuleGraph | None:
        """Read on, for some time; the graph, if it has been read to its end."""
        enough = perf_counter() + seconds
        while self._waiting or self._adopt():
            name = self._waiting.pop()
            if name not in self._found:
                module = self._found[name] = self._module(name)
                self._waiting += module.imports
                if self._waiting and perf_counter() > enough:
                    return None
        return ModuleGraph(self._found)

    def _adopt(self) -> bool:
        """Count a sub-module that no statement imports as imported by its package; whether there was one."""
        for name in self._loaded:
            package = self._found.get(name.rpartition(".")[0])
            if name not in self._found and package is not None and package.loose and package.package:
                self._found[package.name] = evolve(package, imports=package.imports | {name})
                self._waiting.append(name)
        return bool(self._waiting)

    def _module(self, name: str) -> Module:
        module = self._loaded[name]
        file, package = file_of(module), hasattr(module, "__path__")
        if not self._is_loose(name, file, package):
            return Module(name, file, False, package=package)
        wanted = {name for imported in self._wanted(name, module, file) for name in with_parents(imported)}
        wanted |= {*with_parents(name)} - {name}
        there = {other for other in wanted if isinstance(self._loaded.get(other), ModuleType)}
        return Module(name, file, True, frozenset(there) - {name}, frozenset(wanted - there), package)

    def _wanted(self, name: str, module: ModuleType, file: str | None) -> Iterator[str]:
        if file is not None and file.endswith(".py"):
            package = name if hasattr(module, "__path__") else name.rpartition(".")[0]
            yield from self._cache.imports(file, package)
        # What was imported by other means is seen where it is kept. (A package keeps its sub-modules in any case.)
        modules = (value for value in [*vars(module).values()] if isinstance(value, ModuleType))
        for other in modules:
            if self._loaded.get(other.__name__) is other and other.__name__.rpartition(".")[0] != name:
                yield other.__name__

    def _is_loose(self, name: str, file: str | None, package: bool) -> bool:
        if is_hosts(name) or name == "__main__":
            return False
        if file is None:
            return package and name.partition(".")[0] in self._tops  # a namespace: nothing of its own, but a way on
        if not file.endswith(".py") or is_host(file) or is_python(file):
            return False
        return name.partition(".")[0] in self._tops or not is_installed(file)


def _reach(start: set[str], steps: Callable[[str], Iterable[str]]) -> frozenset[str]:
    found = set(start)
    waiting = [*start]
    for name in waiting:  # The list grows while it is walked.
        new = set(steps(name)) - found
        found |= new
        waiting += new
    return frozenset(found)
