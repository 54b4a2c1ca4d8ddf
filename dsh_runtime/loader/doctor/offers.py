"""Who could provide a service: the plugins of the config that say they do, and installed ones that are not in use.

The source of an installed plugin is read and not run: ``provides = (…)``, a ``Service`` class with its ``name``, and
``ctx.provide("name", …)`` are declarations that can be seen. How much is read has a bound.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dsh_runtime.core.lifecycle import State
from dsh_runtime.loader.discover import InstalledPlugin
from dsh_runtime.loader.errors import quote_key
from dsh_runtime.loader.host import Host
from dsh_runtime.loader.model import PluginRow
from dsh_runtime.loader.target import BadUseError, FileTarget, parse_use

if TYPE_CHECKING:
    from dsh_runtime.core.fiber import Fiber

MAX_FILES: Final = 200
MAX_BYTES: Final = 1_000_000
_WORDS: Final = (b"provide", b"Service")
"""A source without any of them declares nothing."""
_RECORD_SERVICE: Final = "sessions"


class Offers:
    """What a host's plugins provide, and the installed ones beside them. Nothing is read before somebody asks."""

    def __init__(self, host: Host, unused: Sequence[InstalledPlugin]) -> None:
        self._host = host
        self._unused = unused
        self._read: dict[InstalledPlugin, frozenset[str]] = {}
        self._rows: dict[str, frozenset[str]] = {}

    def remedy(self, missing: Sequence[str]) -> str | None:
        """What to do about missing services; ``None`` where nobody is known who provides one."""
        return "; ".join(filter(None, map(self._remedy_for, missing))) or None

    def circle(self, fiber: Fiber) -> tuple[str, ...]:
        """The plugins of the config that wait for one another in a circle with one, also where only their sources say
        what they provide; nothing where there is none."""
        came: dict[str, tuple[str, ...]] = {}
        waiting: list[tuple[str, ...]] = [(fiber.id,)]
        for path in waiting:  # The list grows while it is walked.
            for provider in self._waited_for(path[-1]):
                if provider == fiber.id:
                    return (*path, provider)
                if provider not in came:
                    came[provider] = (*path, provider)
                    waiting.append(came[provider])
        return ()

    def _waited_for(self, plugin: str) -> list[str]:
        fiber = next((one.fiber for one in self._host.plugins if one.id == plugin), None)
        missing = fiber.missing if fiber is not None and fiber.state is State.PENDING else []
        rows = [self._provider(service) for service in missing]
        return [row.id for row in rows if row is not None]

    def _provider(self, service: str) -> PluginRow | None:
        """The plugin of the config that provides a service, or says so."""
        rows = self._host.config.rows
        return next((row for row in rows if service in self._said(row) | self._seen(row)), None)

    def _seen(self, row: PluginRow) -> frozenset[str]:
        if row.id not in self._rows:
            self._rows[row.id] = _services_of_use(row.use, row.directory)
        return self._rows[row.id]

    def _remedy_for(self, service: str) -> str | None:
        if service == _RECORD_SERVICE:
            return "the host's own log provides 'sessions': write enabled = true in [host.log]"
        row = self._provider(service)
        if row is not None:
            return self._wake(service, row)
        able = [plugin for plugin in self._unused if service in self._services_of(plugin)]
        return _enable(service, able) if able else None

    def _services_of(self, plugin: InstalledPlugin) -> frozenset[str]:
        if plugin not in self._read:
            self._read[plugin] = services_of(plugin.value)
        return self._read[plugin]

    def _said(self, row: PluginRow) -> frozenset[str]:
        """What a plugin that is loaded says of itself."""
        fiber = self._fiber(row)
        return frozenset(fiber.spec.provides) if fiber is not None else frozenset()

    def _wake(self, service: str, row: PluginRow) -> str:
        fiber = self._fiber(row)
        state = str(fiber.state) if fiber is not None else "not loaded" if row.enabled else "disabled"
        do = "see what is said of it" if row.enabled else "remove enabled = false from it"
        return f"plugin {row.id!r} of the config provides {service!r} and is {state}: {do}"

    def _fiber(self, row: PluginRow) -> Fiber | None:
        return next((plugin.fiber for plugin in self._host.plugins if plugin.id == row.id), None)


def _enable(service: str, able: Sequence[InstalledPlugin]) -> str:
    """The rows to add, of which any one will do."""
    ways = [
        f"[[plugin]] id = {quote_text(plugin.name)}, use = {quote_text(plugin.name)} "
        f"({plugin.distribution} {plugin.version})"
        for plugin in able
    ]
    return f"an installed plugin provides {service!r}, add it: {' or '.join(ways)}"


def quote_text(word: str) -> str:
    """A word as a TOML text."""
    quoted = quote_key(word)
    return quoted if quoted.startswith('"') else f'"{quoted}"'


def services_of(value: str) -> frozenset[str]:
    """The services that a module, or the package around it, says it provides; it is not imported."""
    module = value.partition(":")[0]
    return frozenset(name for file in _files_of(module) for name in _declared_in(file))


def _services_of_use(use: str, directory: Path) -> frozenset[str]:
    from dsh_runtime.loader.discover import AmbiguousNameError, find_installed

    try:
        target = parse_use(use, directory)
        if isinstance(target, FileTarget):
            return frozenset(_declared_in(target.file))
        found = find_installed(use)
    except (AmbiguousNameError, BadUseError):
        return frozenset()
    return services_of(found.value if found is not None else use)


def _files_of(module: str) -> list[Path]:
    """The Python files of a module, or of the package that it is."""
    spec = _find(module)
    if spec is None or spec.origin is None:
        return []
    if not spec.submodule_search_locations:
        return [Path(spec.origin)]
    files: list[Path] = []
    for location in spec.submodule_search_locations:
        for folder, folders, names in os.walk(location):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            files += [Path(folder, name) for name in sorted(names) if name.endswith(".py")]
            if len(files) >= MAX_FILES:
                return files[:MAX_FILES]
    return files


def _find(module: str) -> ModuleSpec | None:
    """Where a module stands; the packages around it are not imported either."""
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first)
        for number in range(len(rest)):
            if spec is None:
                return None
            name = ".".join([first, *rest[: number + 1]])
            spec = PathFinder.find_spec(name, spec.submodule_search_locations)
    except (ImportError, ValueError):
        return None
    return spec


def _declared_in(file: Path) -> Iterator[str]:
    try:
        source = file.read_bytes() if file.is_file() and file.stat().st_size <= MAX_BYTES else b""
        if not any(word in source for word in _WORDS):
            return
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and "provides" in _targets(node):
            yield from _texts(node.value)
        elif isinstance(node, ast.ClassDef) and any(_last_name(base).endswith("Service") for base in node.bases):
            yield from _named(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "provide":
            yield from _texts(node.args[0] if node.args else None)


def _named(node: ast.ClassDef) -> Iterator[str]:
    """The ``name`` of a class of services."""
    for statement in node.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and "name" in _targets(statement):
            yield from _texts(statement.value)


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _texts(node: ast.expr | None) -> Iterator[str]:
    """The text that an expression is, or the texts that it lists."""
    items = node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else [node]
    for item in items:
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            yield item.value


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
