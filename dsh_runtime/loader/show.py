"""List a merged config value by value, with the place that each came from and no secret in sight."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator

from attrs import asdict, frozen

from .errors import KeyPath, Location, format_path
from .model import HostConfig, PluginRow

MASK = "***"


@frozen
class ShownValue:
    """One line of ``config show``. ``location`` is ``None`` for a default and for a config that came from Python."""

    path: KeyPath
    text: str
    location: Location | None

    def __str__(self) -> str:
        line = f"{format_path(self.path)} = {self.text}"
        return f"{line}  # {self.location}" if self.location else line


def show_config(config: HostConfig) -> list[ShownValue]:
    """Every value of the config in its order, defaults of the host included; secrets read ``***``."""
    shown = []
    for index, row in enumerate(config.rows):
        shown += [_show(config, path, value) for path, value in _flatten(_stated(row), ("plugin", index))]
    shown += [_show(config, path, value) for path, value in _flatten(asdict(config.host), ("host",))]
    if config.pins is not None:
        shown += [_show(config, path, value) for path, value in _flatten(_stated_pins(config), ("pins",))]
    return shown


def _stated(row: PluginRow) -> dict[str, object]:
    values: dict[str, object] = {"id": row.id, "use": row.use, "enabled": row.enabled, "optional": row.optional}
    return {**values, "config": row.config} if row.config else values


def _stated_pins(config: HostConfig) -> dict[str, object]:
    pins = {row_id: asdict(pin) for row_id, pin in (config.pins or {}).items()}
    return {row_id: {key: value for key, value in pin.items() if value is not None} for row_id, pin in pins.items()}


def _show(config: HostConfig, path: KeyPath, value: object) -> ShownValue:
    text = MASK if config.is_secret(path) else _text(value)
    return ShownValue(path, text, config.trace.exact(path))


def _flatten(value: object, path: KeyPath) -> Iterator[tuple[KeyPath, object]]:
    if isinstance(value, dict) and value:
        for key, entry in value.items():
            yield from _flatten(entry, (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _flatten(item, (*path, index))
    else:
        yield path, value


def _text(value: object) -> str:
    """A value as TOML would have it, near enough to read."""
    if value is None:
        return "false"
    if isinstance(value, (bool, str, dict, list)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value)
