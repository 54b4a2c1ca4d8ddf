"""Which plugins are installed: the ``dsh.plugins`` entry points, read without importing any of them.

``importlib.metadata`` takes tens of milliseconds where many distributions are installed. So the directories of
``sys.path`` are searched first, and only the entry points of distributions that have any are read; what only
``importlib.metadata`` can see (zip files, custom finders) is asked for when a name was not found that way, or when
everything is listed. Either scan runs once per process and ``sys.path``.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from importlib.metadata import Distribution

GROUP = "dsh.plugins"

_METADATA_FILES = ("METADATA", "PKG-INFO")


class AmbiguousNameError(Exception):
    """Several distributions claim one entry-point name."""


@frozen(order=True)
class InstalledPlugin:
    """An entry point of an installed distribution. ``value`` is its ``package.module:attr``."""

    name: str
    value: str
    distribution: str
    version: str


def installed_plugins() -> tuple[InstalledPlugin, ...]:
    """Every installed plugin, by name; none of them is imported."""
    search_path = tuple(sys.path)
    found = {(plugin.name, plugin.value): plugin for plugin in _scan_metadata(search_path)}
    found |= {(plugin.name, plugin.value): plugin for plugin in _scan_directories(search_path)}
    return tuple(sorted(found.values()))


def claims() -> tuple[InstalledPlugin, ...]:
    """Every installed plugin, those that two distributions offer in the same words included."""
    search_path = tuple(sys.path)
    return tuple(sorted({*_scan_metadata(search_path), *_scan_directories(search_path)}))


def find_installed(name: str) -> InstalledPlugin | None:
    """The installed plugin of that name; ``AmbiguousNameError`` when there are two."""
    search_path = tuple(sys.path)
    found = [plugin for plugin in _scan_directories(search_path) if plugin.name == name]
    found = found or [plugin for plugin in _scan_metadata(search_path) if plugin.name == name]
    if len(found) > 1:
        owners = " and ".join(f"{plugin.distribution} {plugin.version}" for plugin in found)
        values = " or ".join(f"'{plugin.value}'" for plugin in found)
        message = f"entry point '{name}' is claimed by {owners}; uninstall one, or write use = {values}"
        raise AmbiguousNameError(message)
    return found[0] if found else None


def forget_installed() -> None:
    """Scan afresh at the next question, after something was installed."""
    _scan_directories.cache_clear()
    _scan_metadata.cache_clear()


@functools.lru_cache(maxsize=1)
def _scan_directories(search_path: tuple[str, ...]) -> tuple[InstalledPlugin, ...]:
    """The first distribution of a name on the path is the one that counts, as it is for Python."""
    seen: set[str] = set()
    found: list[InstalledPlugin] = []
    for directory in search_path:
        here = {_project(entry): entry for entry in _metadata_directories(directory or ".")}
        for project in sorted(here.keys() - seen):
            found += _read_plugins(Path(here[project]))
        seen |= here.keys()
    return tuple(found)


def _metadata_directories(directory: str) -> Iterator[str]:
    try:
        with os.scandir(directory) as entries:
            yield from (entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
    except OSError:
        return  # a zip file, or a path that does not exist


def _project(directory: str) -> str:
    """The distribution's normalised name, from the name of its metadata directory."""
    name = os.path.basename(directory).rpartition(".")[0].partition("-")[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def _read_plugins(directory: Path) -> list[InstalledPlugin]:
    try:
        text = (directory / "entry_points.txt").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return []
    entries = _read_group(text) if f"[{GROUP}]" in text else []
    if not entries:
        return []
    distribution, version = _read_identity(directory)
    return [InstalledPlugin(name, value, distribution, version) for name, value in entries]


def _read_group(text: str) -> list[tuple[str, str]]:
    """The ``name = value`` lines of our group."""
    section = ""
    entries = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == GROUP and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            entries.append((name.strip(), _without_extras(value)))
    return entries


def _without_extras(value: str) -> str:
    return value.partition("[")[0].strip()


def _read_identity(directory: Path) -> tuple[str, str]:
    """Name and version from the head of the metadata, or failing that from the directory's name."""
    fields = dict(zip(("Name", "Version"), (*directory.stem.split("-", 1), "unknown"), strict=False))
    for file in _METADATA_FILES:
        try:
            head = (directory / file).read_text("utf-8", errors="replace").partition("\n\n")[0]
        except OSError:
            continue
        fields.update(re.findall(r"(?m)^(Name|Version): *(\S+)", head))
    return fields["Name"], fields["Version"]


@functools.lru_cache(maxsize=1)
def _scan_metadata(search_path: tuple[str, ...]) -> tuple[InstalledPlugin, ...]:
    from importlib.metadata import entry_points

    return tuple(
        InstalledPlugin(point.name, _without_extras(point.value), *_identity(point.dist))
        for point in entry_points(group=GROUP)
    )


def _identity(distribution: Distribution | None) -> tuple[str, str]:
    """Name and version, where broken metadata may lack either."""
    metadata: Any = distribution.metadata if distribution else {}
    return metadata.get("Name") or "unknown", metadata.get("Version") or "unknown"
