"""What a row's ``use`` points at, read off its spelling and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

_DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"
_FORMS = "an entry-point name, 'package.module:attr' or './file.py'"
MAX_USE = 1_000


class BadUseError(Exception):
    """Why a ``use`` cannot be read."""


@frozen
class FileTarget:
    """A Python file, and optionally a name in it."""

    file: Path
    attr: str | None = None


@frozen
class ModuleTarget:
    """An importable module, and optionally a name in it."""

    module: str
    attr: str | None = None


@frozen
class NameTarget:
    """The name of an entry point or, where no distribution has one, of a module."""

    name: str

    @property
    def may_be_module(self) -> bool:
        """Whether the name could be a module's."""
        return re.fullmatch(_DOTTED, self.name) is not None


Target: TypeAlias = FileTarget | ModuleTarget | NameTarget


def parse_use(use: str, directory: Path) -> Target:
    """Read a ``use``; a relative file path starts at ``directory``, where the config file stands."""
    if not use or len(use) > MAX_USE or not use.isprintable():
        raise BadUseError(f"'use' must be {_FORMS}")
    file = re.fullmatch(r"(.+\.py)(?::([^:/\\]+))?", use)
    if file:
        return FileTarget(directory / file[1], _attr(file[2]))
    if use.startswith((".", "/")):
        raise BadUseError(f"'{use}' is no Python file; 'use' takes {_FORMS}")
    module, colon, attr = use.partition(":")
    if colon and re.fullmatch(_DOTTED, module):
        return ModuleTarget(module, _attr(attr or None))
    if not re.fullmatch(r"[\w.-]+", use):
        raise BadUseError(f"'{use}' is neither {_FORMS}")
    return NameTarget(use)


def _attr(attr: str | None) -> str | None:
    if attr is not None and not re.fullmatch(_DOTTED, attr):
        raise BadUseError(f"'{attr}' is no attribute name; write 'package.module:attr'")
    return attr
