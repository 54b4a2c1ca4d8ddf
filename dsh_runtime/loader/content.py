"""What the code of a plugin consists of, as one digest: read off its files, with nothing imported.

An installed wheel is the files that its RECORD lists, each compared with the hash that stands there; what installers
add (caches, the RECORD itself, scripts) is left out, so that one wheel has one digest wherever it is installed. Code
that no RECORD lists, an editable install's say, is the source package that would be imported. A plugin that is a file
is that file.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath
from typing import Final, TypeVar

from attrs import frozen

from .discover import find_installed
from .errors import quoted
from .model import PluginRow
from .resolve import find_target
from .target import FileTarget, NameTarget, parse_use

T = TypeVar("T")
MAX_FILES: Final = 20_000
MAX_BYTES: Final = 512 * 1024 * 1024

_OF_THE_INSTALLER: Final = frozenset(
    {"RECORD", "RECORD.jws", "RECORD.p7s", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}
)
_IMPORTABLE: Final = (".py", ".pyc", ".so", ".pyd")
_CHUNK: Final = 1024 * 1024


class UnpinnableError(Exception):
    """The code of a plugin cannot be looked at; the message says why, and what to do."""


@frozen
class Content:
    """What a plugin's code is: its wheel, if it comes from one, its digest, and files that are not what RECORD says."""

    digest: str
    wheel: str | None = None
    version: str | None = None
    faults: tuple[str, ...] = ()


def content_of(row: PluginRow) -> Content:
    """The content of the plugin that a row uses. Raises what :func:`find_target` does, and ``UnpinnableError``."""
    target = find_target(row)
    if isinstance(target, FileTarget):
        return Content(_digest({target.file.name: _hash_file(target.file)}))
    source = locate_source(target.module)
    owner = _owner(row, source)
    if owner is None:
        return Content(_digest(_hash_source(source)))
    listed = _listed_files(owner)
    name, version = owner.metadata["Name"], owner.version
    if listed is None or not _lists(owner, listed, source):
        return Content(_digest(_hash_source(source)), name, version)
    hashes, faults = _compare(owner, listed)
    return Content(_digest(hashes), name, version, tuple(faults))


def locate_source(module: str) -> Path:
    """The folder or file of the outermost package that importing ``module`` would run; nothing is run for it."""
    top, *rest = module.split(".")
    spec = _spec_of(top)
    places = list(spec.submodule_search_locations or ())
    if spec.has_location and spec.origin is not None:
        return Path(spec.origin).parent if places else Path(spec.origin)
    for name in rest:  # beneath namespace packages, which hold no code
        for place in places:
            if (found := _source_in(Path(place), name)) is not None:
                return found
        places = [inner for place in places if os.path.isdir(inner := os.path.join(place, name))]
    raise UnpinnableError(f"the code of the module {quoted(module)} is no file; a host with pins cannot run it")


def _spec_of(top: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:
        spec = None
    if spec is None:
        raise UnpinnableError(f"the module {quoted(top)} cannot be found; install it, or correct 'use'")
    return spec


def _source_in(place: Path, name: str) -> Path | None:
    folder = place / name
    if (folder / "__init__.py").is_file():
        return folder
    files = (file for file in _scan(place) if file.partition(".")[0] == name and file.endswith(_IMPORTABLE))
    return next((place / file for file in sorted(files)), None)


def _scan(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _owner(row: PluginRow, source: Path) -> Distribution | None:
    """The distribution that a row's plugin comes from: that of its entry point, else the one that lists its source."""
    target = parse_use(row.use, row.directory)
    plugin = find_installed(target.name) if isinstance(target, NameTarget) else None
    if plugin is not None:
        return next(iter(distributions(name=plugin.distribution)), None)
    for candidate in distributions():
        if source.name not in (candidate.read_text("RECORD") or ""):
            continue  # most of them, at the price of a look
        listed = _listed_files(candidate)
        if listed is not None and _lists(candidate, listed, source):
            return candidate
    return None


# Installed wheels.


def _listed_files(owner: Distribution) -> dict[str, str] | None:
    """The files of a wheel by path, each with the hash that its RECORD gives; ``None`` if it has no RECORD."""
    record = owner.read_text("RECORD")
    if record is None:
        return None
    rows = (line for line in csv.reader(record.splitlines()) if len(line) >= 2)
    return {path: digest for path, digest, *_ in rows if _belongs(path)}


def _belongs(path: str) -> bool:
    """Whether a listed file came with the wheel and stands among its modules."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith(("/", "\\")) or ".." in parts or "__pycache__" in parts:
        return False
    return not (parts[0].endswith(".dist-info") and parts[-1] in _OF_THE_INSTALLER)


def _lists(owner: Distribution, listed: Mapping[str, str], source: Path) -> bool:
    """Whether a wheel brought the code that would be imported; an editable install did not."""
    root = os.path.realpath(str(owner.locate_file("")))
    real = os.path.realpath(source)
    if not real.startswith(root + os.sep):
        return False
    path = os.path.relpath(real, root).replace(os.sep, "/")
    return path in listed or f"{path}/__init__.py" in listed


def _compare(owner: Distribution, listed: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The hashes of a wheel's files as they are now, and which of them are not what the wheel brought."""
    root = Path(str(owner.locate_file("")))
    hashes: dict[str, str] = {}
    faults: list[str] = []
    for path, stated in _bounded(listed.items()):
        try:
            hashes[path] = _hash_file(root / path)
            if stated and not _is_as_stated(root / path, hashes[path], stated):
                faults.append(path)
        except UnpinnableError:
            hashes[path] = "unreadable"
            faults.append(path)
    for path in sorted(_unlisted(root, listed)):
        hashes[path] = _hash_file(root / path)
        faults.append(path)
    return hashes, faults


def _is_as_stated(file: Path, digest: str, stated: str) -> bool:
    """Whether a file has the hash that a RECORD gives, which is not always SHA-256."""
    algorithm, _, expected = stated.partition("=")
    if algorithm not in hashlib.algorithms_guaranteed or algorithm.startswith("shake"):
        return False
    found = digest if algorithm == "sha256" else _hash_file(file, algorithm)
    return base64.urlsafe_b64encode(bytes.fromhex(found)).rstrip(b"=").decode("ascii") == expected.rstrip("=")


def _unlisted(root: Path, listed: Mapping[str, str]) -> Iterator[str]:
    """What could be imported from a wheel's packages and did not come with it: it may stand in a module's place."""
    packages = {path.removesuffix("/__init__.py") for path in listed if path.endswith("/__init__.py")}
    outermost = {path for path in packages if not any(str(above) in packages for above in PurePosixPath(path).parents)}
    for package in outermost:
        for file in _files_below(root / package):
            path = file.relative_to(root).as_posix()
            if path not in listed and path.endswith(_IMPORTABLE):
                yield path


# Sources.


def _hash_source(source: Path) -> dict[str, str]:
    """The hashes of a package's files, or of a module's one, by their paths inside it."""
    if not source.is_dir():
        return {source.name: _hash_file(source)}
    found = _bounded(_files_below(source))
    return {f"{source.name}/{file.relative_to(source).as_posix()}": _hash_file(file) for file in found}


def _files_below(folder: Path) -> Iterator[Path]:
    """Every file of a package; caches and hidden folders hold no code of it."""
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        yield from (Path(place, name) for name in sorted(files))


def _bounded(items: Iterable[T]) -> Iterator[T]:
    for number, item in enumerate(items):
        if number >= MAX_FILES:
            raise UnpinnableError(f"the plugin has more than {MAX_FILES} files; a host with pins cannot run it")
        yield item


def _hash_file(file: Path, algorithm: str = "sha256") -> str:
    digest = hashlib.new(algorithm)
    read = 0
    try:
        if not file.is_file():
            raise UnpinnableError(f"'{file}' does not exist or is no regular file; put it back, or correct 'use'")
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                read += len(chunk)
                if read > MAX_BYTES:
                    raise UnpinnableError(f"'{file}' is too large to be looked at; a host with pins cannot run it")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UnpinnableError(f"'{file}' cannot be read ({reason}); put it back, or correct 'use'") from error
    return digest.hexdigest()


def _digest(hashes: Mapping[str, str]) -> str:
    """One digest of many files: of their paths and hashes, in the order of the paths."""
    lines = (f"{path}\0{hashes[path]}\n" for path in sorted(hashes))
    return "sha256:" + hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
