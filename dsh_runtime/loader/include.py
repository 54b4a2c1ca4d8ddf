"""Follow ``include``: read every file once, what is included before what includes it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import define, field

from .check import check_shape
from .document import read_document
from .errors import ConfigError, ConfigProblem, KeyPath
from .nodes import Array, Leaf, Table
from .substitute import Substitution

MAX_INCLUDE_DEPTH = 16
MAX_FILES = 100


@define
class Gathering:
    """Reads a config and all that it includes. ``layers`` are the files' trees, lowest first."""

    environ: Mapping[str, str] = field(repr=False)
    layers: list[Table] = field(factory=list)
    problems: list[ConfigProblem] = field(factory=list)
    sources: list[str] = field(factory=list)
    value_files: list[str] = field(factory=list)
    _seen: set[str] = field(factory=set)

    def add_file(self, path: Path, chain: tuple[str, ...] = ()) -> None:
        """Read a file, unless it was read before, and what it includes."""
        identity = _identity(path)
        if identity in self._seen:
            return
        self._seen.add(identity)
        try:
            tree = read_document(path)
        except ConfigError as error:
            self.problems += error.problems
            return
        self.add_tree(tree, path.parent, (*chain, identity))
        self.sources.append(str(path))

    def add_tree(self, tree: Table, directory: Path, chain: tuple[str, ...] = ()) -> None:
        """Take in what a file says: first the files that it includes, then its own."""
        substitution = Substitution(self.environ, directory)
        filled = substitution.apply(tree)
        assert isinstance(filled, Table)
        self.problems += substitution.problems
        self.value_files += substitution.files
        self.problems += _without_repeats(check_shape(filled), substitution.problems)
        includes = filled.entries.get("include")
        for index, item in enumerate(includes.items if isinstance(includes, Array) else ()):
            if isinstance(item, Leaf) and isinstance(item.value, str) and item.value and not item.secret:
                self._include(item, ("include", index), directory, chain)
        self.layers.append(filled)

    def _include(self, item: Leaf, path: KeyPath, directory: Path, chain: tuple[str, ...]) -> None:
        file = directory / str(item.value)
        refusal = self._refusal(_identity(file), chain)
        if refusal is None and not os.path.isfile(file):
            refusal = f"included file '{file}' does not exist or is no regular file; correct the name"
        if refusal is None:
            self.add_file(file, chain)
        else:
            self.problems.append(ConfigProblem(path, refusal, item.where))

    def _refusal(self, identity: str, chain: tuple[str, ...]) -> str | None:
        links = " -> ".join(Path(link).name for link in (*chain, identity))
        if identity in chain:
            return f"the files include each other in a circle ({links}); remove one of the includes"
        if len(chain) >= MAX_INCLUDE_DEPTH:
            return f"includes nest deeper than {MAX_INCLUDE_DEPTH} files ({links}); include fewer levels"
        if len(self._seen) >= MAX_FILES:
            return f"the config consists of more than {MAX_FILES} files; include fewer"
        return None


def _identity(file: Path) -> str:
    """What two names of one file have in common."""
    try:
        return os.path.realpath(file)
    except ValueError:  # a null byte: no file has such a name, and reading it will say so
        return str(file)


def _without_repeats(found: Iterable[ConfigProblem], known: Iterable[ConfigProblem]) -> list[ConfigProblem]:
    """Leave out what is wrong with a value only because its substitution failed."""
    told = {problem.path for problem in known}
    return [problem for problem in found if problem.path not in told]
