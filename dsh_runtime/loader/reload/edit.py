"""What an edit of the config changes. Pure decisions over two configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from dsh_runtime.loader.errors import KeyPath, format_path
from dsh_runtime.loader.model import HostConfig, PluginRow
from dsh_runtime.loader.settings import known_settings, table_of

#: The settings of ``[host]`` that a running host can take up.
CHANGEABLE: Final = frozenset(
    {
        "approval",
        "approval_timeout",
        "drain_timeout",
        "max_depth",
        "policy_timeout",
        "reload_timeout",
        "reload_wait",
        "start_timeout",
        "teardown_timeout",
        "threads",
    }
)


@frozen
class Edit:
    """The difference of two configs: rows by their ids, and the settings that need a restart."""

    new: HostConfig
    added: Mapping[str, PluginRow] = field(factory=dict)
    removed: Mapping[str, PluginRow] = field(factory=dict)
    changed: Mapping[str, PluginRow] = field(factory=dict)
    settings: tuple[KeyPath, ...] = ()
    fixed: tuple[KeyPath, ...] = ()

    @property
    def touched(self) -> tuple[str, ...]:
        """The plugins that come, go or change."""
        return (*self.added, *self.removed, *self.changed)


def compare(old: HostConfig, new: HostConfig) -> Edit:
    """What ``new`` changes."""
    before, after = _enabled(old), _enabled(new)
    settings = _different(old.host, new.host, ("host",))
    return Edit(
        new,
        added={plugin: row for plugin, row in after.items() if plugin not in before},
        removed={plugin: row for plugin, row in before.items() if plugin not in after},
        changed={plugin: row for plugin, row in after.items() if plugin in before and before[plugin] != row},
        settings=tuple(settings),
        fixed=tuple(path for path in settings if path[1] not in CHANGEABLE),
    )


def why_changed(old: PluginRow, new: PluginRow) -> str:
    """What of a row has changed, in words."""
    parts = [name for name in ("use", "config", "optional") if getattr(old, name) != getattr(new, name)]
    return f"its {' and '.join(parts) or 'row'} changed"


def named(paths: tuple[KeyPath, ...]) -> str:
    """Settings as a message names them: ``[host] threads``."""
    return ", ".join(f"[host] {format_path(path[1:])}" for path in paths)


def _enabled(config: HostConfig) -> dict[str, PluginRow]:
    return {row.id: row for row in config.rows if row.enabled}


def _different(old: Any, new: Any, path: KeyPath) -> list[KeyPath]:
    found: list[KeyPath] = []
    for name, setting in known_settings(type(old)).items():
        one, other = getattr(old, name), getattr(new, name)
        if table_of(setting) is not None:
            found += _different(one, other, (*path, name))
        elif one != other:
            found.append((*path, name))
    return found
