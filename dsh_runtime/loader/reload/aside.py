"""Import modules afresh under their own names, with the old ones kept until it is certain that the new ones stay.

Sources are compiled each time, by a finder that stands in front of the others: cached bytecode is known by the second
and the length of its source, which two edits can share.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from dsh_runtime.loader.ownership import is_python

from .graph import Stamp, is_hosts, is_installed, stamp_of

_MISSING: Final = object()


class FreshLoader(SourceFileLoader):
    """Compiles the source each time, and notes which version of the file it was."""

    def __init__(self, fullname: str, path: str, finder: FreshFinder) -> None:
        super().__init__(fullname, path)
        self._finder = finder

    def get_code(self, fullname: str) -> CodeType:
        """The code of the source as it stands on the disk."""
        stamp = stamp_of(self.path)
        code = self.source_to_code(self.get_data(self.path), self.path)
        assert isinstance(code, CodeType)
        if stamp is not None:
            self._finder.stamps[fullname] = stamp
        return code


class FreshFinder(MetaPathFinder):
    """Finds what the other finders find, and has sources that somebody works on loaded by :class:`FreshLoader`.

    ``tops`` are the top-level packages of plugins, which count wherever they are installed.
    """

    def __init__(self) -> None:
        self.tops: frozenset[str] = frozenset()
        #: Which version of its file each module was loaded from.
        self.stamps: dict[str, Stamp] = {}

    def install(self) -> None:
        """Stand in front of the other finders."""
        sys.meta_path.insert(0, self)

    def uninstall(self) -> None:
        """Be asked no more."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module."""
        for finder in tuple(sys.meta_path):
            if isinstance(finder, FreshFinder) or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if type(spec.loader) is SourceFileLoader and self.is_worked_on(fullname, spec.loader.path):
                    spec.loader = FreshLoader(fullname, spec.loader.path, self)
                return spec
        return None

    def is_worked_on(self, name: str, file: str) -> bool:
        """Whether a file is a source that may come afresh."""
        if is_hosts(name) or is_python(file) or not file.endswith(".py"):
            return False
        return name.partition(".")[0] in self.tops or not is_installed(file)


class Aside:
    """Some modules out of the way, so that they are imported afresh; :meth:`restore` puts the old ones back."""

    def __init__(self, finder: FreshFinder, names: Collection[str], folders: Iterable[str]) -> None:
        self._finder = finder
        self._folders = [*folders]
        self._names = frozenset(names)
        self._old: dict[str, ModuleType] = {}
        self._attributes: list[tuple[ModuleType, str, Any]] = []
        self._stamps: dict[str, Stamp] = {}
        self._before: frozenset[str] | None = None

    def begin(self) -> None:
        """Set the modules aside."""
        self._stamps = dict(self._finder.stamps)
        self._before = frozenset(sys.modules)
        for name in sorted(self._names):
            self._set_aside(name)
        _look_again(self._folders)

    def add(self, names: Collection[str]) -> None:
        """Set some more modules aside."""
        for name in sorted(frozenset(names) - self._names):
            self._set_aside(name)
        self._names |= frozenset(names)

    def note(self, name: str, file: str) -> None:
        """A module is about to be loaded from ``file`` by other means."""
        stamp = stamp_of(file)
        if stamp is not None:
            self._finder.stamps[name] = stamp

    def restore(self) -> None:
        """Put everything back as it was. Libraries that were imported for the first time stay."""
        if self._before is None:
            return
        for name in [name for name in sys.modules if name in self._names or name not in self._before]:
            module = sys.modules[name]
            file = getattr(module, "__file__", None)
            if name in self._names or (isinstance(file, str) and self._finder.is_worked_on(name, file)):
                del sys.modules[name]
                _drop_attribute(name, module)
        sys.modules.update(self._old)
        for parent, attribute, value in reversed(self._attributes):
            setattr(parent, attribute, value)
        self._finder.stamps = self._stamps
        self._before = None

    def _set_aside(self, name: str) -> None:
        module = sys.modules.pop(name, None)
        if module is None:
            return
        self._old[name] = module
        parent, attribute = _place_of(name)
        if parent is not None and vars(parent).get(attribute, _MISSING) is module:
            self._attributes.append((parent, attribute, module))
            delattr(parent, attribute)


def _place_of(name: str) -> tuple[ModuleType | None, str]:
    """The package whose attribute a module is, and the attribute's name."""
    package, _, attribute = name.rpartition(".")
    return sys.modules.get(package), attribute


def _drop_attribute(name: str, module: ModuleType) -> None:
    parent, attribute = _place_of(name)
    if parent is not None and vars(parent).get(attribute) is module:
        delattr(parent, attribute)


def _look_again(folders: Iterable[str]) -> None:
    """Have the finders read these folders anew: a file may have come within the resolution of their clock."""
    wanted = {os.path.realpath(folder) for folder in folders}
    names = {os.path.basename(folder) for folder in wanted}
    for folder, finder in list(sys.path_importer_cache.items()):
        same = os.path.basename(folder) in names and os.path.realpath(folder) in wanted
        if same and finder is not None and hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()
