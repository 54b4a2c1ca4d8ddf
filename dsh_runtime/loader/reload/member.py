"""One plugin of a reload: what it is now, and what it is to be."""

from __future__ import annotations

import inspect
import sys
from time import perf_counter
from types import ModuleType
from typing import Any

from attrs import define, field, frozen

from dsh_runtime.core.effects import is_ordinary, may_be_the_users
from dsh_runtime.core.fiber import Fiber
from dsh_runtime.core.lifecycle import State
from dsh_runtime.core.plugins import PluginSpec, read_plugin
from dsh_runtime.core.services import Service
from dsh_runtime.core.staging import family
from dsh_runtime.loader.errors import ConfigProblem
from dsh_runtime.loader.host import LoadedPlugin, config_of, configure
from dsh_runtime.loader.model import HostConfig, PluginRow
from dsh_runtime.loader.pinned import check_row
from dsh_runtime.loader.resolve import (
    PluginNotFoundError,
    attribute_of,
    file_module_name,
    find_target,
    import_module,
    resolve_plugin,
)
from dsh_runtime.loader.target import FileTarget

from .trouble import problems_of_import


@frozen
class Anchor:
    """Where a plugin can be imported from again: a module, and a name in it. ``file`` is that of a file plugin."""

    module: str
    attr: str | None = None
    file: str | None = None


def anchor_of_row(row: PluginRow) -> Anchor | None:
    """The module that a row names; ``None`` if there is none."""
    try:
        target = find_target(row)
    except Exception:  # Whatever is wrong with the row comes out when it is imported.
        return None
    if isinstance(target, FileTarget):
        return Anchor(file_module_name(row.id), target.attr, str(target.file))
    return Anchor(target.module, target.attr)


def anchor_of_object(source: Any) -> Anchor | None:
    """Where a plugin object can be found by name; ``None`` if it cannot."""
    if isinstance(source, ModuleType):
        return Anchor(source.__name__) if sys.modules.get(source.__name__) is source else None
    if not (inspect.isroutine(source) or inspect.isclass(source)):
        return None
    anchor = Anchor(source.__module__, source.__qualname__)
    try:
        return anchor if attribute_of(sys.modules[anchor.module], anchor.attr) is source else None
    except (KeyError, PluginNotFoundError):
        return None


@define(eq=False)
class Member:
    """A plugin that is to run in a new version; ``loaded`` is the old one, if there is one."""

    id: str
    why: str
    path: tuple[int, ...]
    loaded: LoadedPlugin | None
    row: PluginRow | None
    anchor: Anchor | None
    #: Why it cannot be replaced while the host runs, if so.
    refuses: str | None = None
    spec: PluginSpec | None = None
    seconds: float = 0.0
    fiber: Fiber | None = None
    problems: list[ConfigProblem] = field(factory=list)
    #: The fiber of the old version, unless somebody has disposed of it.
    old: Fiber | None = field(init=False)
    was_active: bool = field(init=False)

    def __attrs_post_init__(self) -> None:
        fiber = self.loaded.fiber if self.loaded is not None else None
        self.old = fiber if fiber is None or fiber.state is not State.DISPOSED else None
        self.was_active = self.old is not None and self.old.state is State.ACTIVE

    @property
    def config(self) -> Any:
        """What the new version is mounted with."""
        if self.row is not None:
            return config_of(self.row)
        return self.old.config if self.old is not None else None

    @property
    def optional(self) -> bool:
        """Whether the plugin may fail alone."""
        if self.row is not None:
            return self.row.optional
        return self.old is not None and self.old.optional

    @property
    def stops_first(self) -> bool:
        """Whether the old and the new version cannot be there at once."""
        if self.old is None or self.spec is None:
            return False
        specs = [self.spec, *(fiber.spec for fiber in family(self.old))]
        # One instance of a service cannot belong to two fibers.
        same = self.spec.source is self.old.spec.source and isinstance(self.spec.source, Service)
        return same or any(spec.reload_policy == "stop-first" for spec in specs)

    @property
    def stops_never(self) -> bool:
        """Whether the new version says that it cannot be reloaded."""
        return self.spec is not None and self.spec.reload_policy == "restart"

    def prepare(self, config: HostConfig) -> None:
        """Import the new version; what is wrong is kept as ``problems``."""
        began = perf_counter()
        try:
            self.spec = read_plugin(self._import(config))
        except BaseException as error:
            if not is_ordinary(error) and may_be_the_users():
                raise
            self.problems = problems_of_import(self.id, error)
        self.seconds = perf_counter() - began

    def check_config(self) -> None:
        """Check the config before anything stops; what is applied aside has it checked there."""
        assert self.spec is not None
        try:
            configure(self.spec, self.config)
        except Exception as error:
            self.problems = problems_of_import(self.id, error)

    def _import(self, config: HostConfig) -> Any:
        if self.row is not None:
            check_row(config, self.row)
            return resolve_plugin(self.row)
        if self.anchor is not None:
            return attribute_of(import_module(self.anchor.module), self.anchor.attr)
        assert self.old is not None
        return self.old.spec.source
