"""The config of a host in which somebody works: as its file has it, with the plugin that is worked on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from dsh_runtime.cli.errors import CliError
from dsh_runtime.loader.autoreload import without_reload
from dsh_runtime.loader.code_mode import for_people
from dsh_runtime.loader.errors import ConfigError
from dsh_runtime.loader.find import find_config
from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.model import HostConfig, PluginRow
from dsh_runtime.loader.target import BadUseError, FileTarget, parse_use

if TYPE_CHECKING:
    from dsh_runtime.cli.dev.target import DevTarget


def dev_config(file: Path | None, target: DevTarget | None) -> HostConfig:
    """The config, read afresh; raises ``ConfigError``."""
    config = load_config(file or {})
    if target is not None:
        config = with_target(config, target)
    # Pins are for what is shipped; what is worked on is what they would refuse.
    return without_reload(for_people(evolve(config, pins=None)))


def with_target(config: HostConfig, target: DevTarget) -> HostConfig:
    """The config with the rows that are worked on: those that it has, by their sources, and new ones behind them."""
    rows = list(config.rows)
    for name, use in target.uses.items():
        meant = [index for index, row in enumerate(rows) if _means(row, use, name, target.here)]
        for index in meant:
            rows[index] = evolve(rows[index], use=use, enabled=True)
        if not meant:
            rows.append(PluginRow(id=_free(name, rows), use=use, directory=target.here))
    return evolve(config, rows=tuple(rows))


def find_file(explicit: str | None, target: DevTarget | None) -> Path | None:
    """The config file; beside a plugin that is worked on, there need not be one."""
    if explicit is not None:
        return find_config(explicit)
    if target is None:
        try:
            return find_config()
        except ConfigError as error:
            raise CliError(f"{error}; or give the path of a plugin: dsh-run dev PATH") from error
    here = Path("dsh.toml")
    return here if here.is_file() else None


def _means(row: PluginRow, use: str, name: str, here: Path) -> bool:
    """Whether a row loads what is worked on: by its entry point, in the same words, or from the same file."""
    if row.use in (name, use):
        return True
    try:
        ours, theirs = parse_use(use, here), parse_use(row.use, row.directory)
    except BadUseError:
        return False
    if isinstance(ours, FileTarget) and isinstance(theirs, FileTarget):
        return os.path.realpath(ours.file) == os.path.realpath(theirs.file) and ours.attr == theirs.attr
    return False


def _free(name: str, rows: list[PluginRow]) -> str:
    taken = {row.id for row in rows}
    names = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 3))]
    return next(one for one in names if one not in taken)
