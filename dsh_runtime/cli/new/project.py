"""The files of a new project: templates filled in, and written where nothing is yet."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from attrs import frozen

from dsh_runtime import __version__
from dsh_runtime.cli.new.names import class_of, package_of

Kind: TypeAlias = Literal["tool", "policy", "service"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_SUFFIX: Final = ".tmpl"
_PLACEHOLDER: Final = re.compile(r"\{\{(\w+)\}\}")


class ProjectExistsError(Exception):
    """Something stands where the project is to be written."""


@frozen
class NewFile:
    """One file of a project; ``path`` is relative to the project, with ``/``."""

    path: str
    text: str


@frozen
class _Traits:
    """What the kinds differ in, beside the files of their own. ``{}`` stands for package and class."""

    description: str
    entry: str
    needs_runtime: bool


_TRAITS: Final[Mapping[Kind, _Traits]] = {
    "tool": _Traits("A tool for agents.", "{package}", True),
    "policy": _Traits("A policy on the calls of tools.", "{package}", False),
    "service": _Traits("A service for other plugins.", "{package}:{cls}", True),
}


def project_files(name: str, kind: Kind) -> list[NewFile]:
    """The files of a new project, by path."""
    values = _values(name, kind)
    found = [file for part in ("common", kind) for file in _read(files(__package__) / "templates" / part)]
    filled = [NewFile(_target(path, values["package"]), fill_in(text, values)) for path, text in found]
    return sorted(filled, key=lambda file: file.path)


def fill_in(text: str, values: Mapping[str, str]) -> str:
    """A template with its placeholders filled in; one that has no value is a bug of the template."""
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def write_project(folder: Path, project: list[NewFile]) -> None:
    """Write a project into a folder that this makes; what is there already is left alone.

    :class:`ProjectExistsError` if anything has that name. Whatever else goes wrong, nothing half-written stays.
    """
    try:
        folder.mkdir()
    except FileExistsError:
        raise ProjectExistsError from None
    with _removed_on_failure(folder):
        for file in project:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8", newline="\n") as stream:
                stream.write(file.text)


def _values(name: str, kind: Kind) -> dict[str, str]:
    traits, package, cls = _TRAITS[kind], package_of(name), class_of(name)
    runtime, hookspecs = f"dsh-runtime{_range(__version__)}", f"dsh-hookspecs{_range(version('dsh-hookspecs'))}"
    needed = [runtime, hookspecs] if traits.needs_runtime else [hookspecs, "attrs>=24.2"]
    return {
        "name": name,
        "package": package,
        "cls": cls,
        "description": traits.description,
        "entry": traits.entry.format(package=package, cls=cls),
        "dependencies": ", ".join(f'"{requirement}"' for requirement in needed),
        "testing": f"dsh-runtime[testing]{_range(__version__)}",
    }


def _range(version: str) -> str:
    """From this version up to the next that may break: ``>=0.1,<0.2``, ``>=1.2,<2``."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return f">={major}.{minor},<{major + 1}" if major else f">=0.{minor},<0.{minor + 1}"


def _read(folder: Traversable, path: str = "") -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{path}{entry.name}/")
        elif entry.name.endswith(_SUFFIX):
            yield path + entry.name, entry.read_text("utf-8")


def _target(path: str, package: str) -> str:
    folder, slash, name = path.removesuffix(_SUFFIX).rpartition("/")
    name = re.sub("^dot-", ".", name)
    return f"{folder}{slash}{name}".replace("PACKAGE", package)


@contextlib.contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    made = os.stat(folder)
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):
            if os.path.samestat(made, os.lstat(folder)):  # still the folder that was made here
                shutil.rmtree(folder, ignore_errors=True)
        raise
