"""Who could provide a service: the plugins of the config that say they do, and installed ones that are not in use.

The source of an installed plugin is read and not run: ``provides = (…)``, a ``Service`` class with its ``name``, and
``ctx.provide("name", …)`` are declarations that can be seen. How much is read has a bound.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Final

from attrs import field, frozen

from dsh_runtime.loader.discover import InstalledPlugin
from dsh_runtime.loader.errors import quote_key
from dsh_runtime.loader.host import Host
from dsh_runtime.loader.target import BadUseError, FileTarget, parse_use

MAX_FILES: Final = 200
MAX_BYTES: Final = 1_000_000
_RECORD_SERVICE: Final = "sessions"


@frozen(eq=False)
class Offers:
    """What the plugins of a config provide (id -> services), in which state, and what the installed others do."""

    configured: Mapping[str, frozenset[str]] = field(factory=dict)
    states: Mapping[str, str] = field(factory=dict)
    installed: Sequence[tuple[InstalledPlugin, frozenset[str]]] = ()

    def remedy(self, missing: Sequence[str]) -> str | None:
        """What to do about missing services; ``None`` where nobody is known who provides one."""
        return "; ".join(filter(None, map(self._remedy_for, missing))) or None

    def _remedy_for(self, service: str) -> str | None:
        if service == _RECORD_SERVICE:
            return "the host's own log provides 'sessions': write enabled = true in [host.log]"
        for plugin, services in self.configured.items():
            if service in services:
                return self._wake(service, plugin)
        able = [plugin for plugin, services in self.installed if service in services]
        return _enable(service, able) if able else None

    def _wake(self, service: str, plugin: str) -> str:
        state = self.states.get(plugin, "disabled")
        do = "remove enabled = false from it" if state == "disabled" else "see what is said of it"
        return f"plugin {plugin!r} of the config provides {service!r} and is {state}: {do}"


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


def offers_of(host: Host, unused: Sequence[InstalledPlugin]) -> Offers:
    """What a host's plugins and the installed ones beside them provide."""
    loaded = {plugin.id: plugin.fiber for plugin in host.plugins if plugin.fiber is not None}
    configured = {}
    for row in host.config.rows:
        fiber = loaded.get(row.id)
        said = frozenset(fiber.spec.provides) if fiber is not None else frozenset()
        configured[row.id] = said | _services_of_use(row.use, row.directory)
    states = {name: str(fiber.state) for name, fiber in loaded.items()}
    states |= {row.id: "not loaded" for row in host.config.rows if row.enabled and row.id not in loaded}
    return Offers(configured, states, [(plugin, services_of(plugin.value)) for plugin in unused])


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
        if file.stat().st_size > MAX_BYTES:
            return
        tree = ast.parse(file.read_bytes())
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
