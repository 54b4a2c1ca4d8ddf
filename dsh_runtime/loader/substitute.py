"""Fill ``${env:NAME}`` and ``${file:PATH}`` into the string values of a config.

Keys are left alone, what was filled in is not looked at again, and ``$${`` stands for a literal ``${``. Nothing is
ever evaluated. A value that had a substitution in it is marked as secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from attrs import define, evolve, field

from .errors import ConfigProblem, KeyPath, quoted
from .files import UnreadableFileError, read_regular_file
from .nodes import Array, Leaf, Node, Table

MAX_VALUE_FILE_BYTES = 64 * 1024
MAX_SUBSTITUTIONS = 1_000

_REFERENCE = r"\$\$\{|\$\{([^}]*)\}|\$\{"


class _UnresolvableError(Exception):
    """Why a reference has no value."""


@define
class Substitution:
    """Fills in one file's references; ``problems`` gathers those that have no value, ``files`` what was read."""

    environ: Mapping[str, str] = field(repr=False)
    directory: Path
    problems: list[ConfigProblem] = field(factory=list)
    files: list[str] = field(factory=list)
    _count: int = field(default=0, init=False)

    def apply(self, node: Node, path: KeyPath = ()) -> Node:
        """The same tree with every reference filled in."""
        if isinstance(node, Table):
            entries = {key: self.apply(entry, (*path, key)) for key, entry in node.entries.items()}
            return evolve(node, entries=entries)
        if isinstance(node, Array):
            return evolve(node, items=tuple(self.apply(item, (*path, i)) for i, item in enumerate(node.items)))
        if isinstance(node.value, str) and "${" in node.value:
            return self._fill(node, node.value, path)
        return node

    def _fill(self, leaf: Leaf, text: str, path: KeyPath) -> Leaf:
        secret = False

        def replace(found: re.Match[str]) -> str:
            nonlocal secret
            if found.group() == "$${":
                return "${"
            secret = True
            return self._value_of(found.group(1))

        try:
            return evolve(leaf, value=re.sub(_REFERENCE, replace, text), secret=secret)
        except _UnresolvableError as error:
            self.problems.append(ConfigProblem(path, str(error), leaf.where))
            return evolve(leaf, secret=True)

    def _value_of(self, reference: str | None) -> str:
        self._count += 1
        if self._count > MAX_SUBSTITUTIONS:
            raise _UnresolvableError(f"this file has more than {MAX_SUBSTITUTIONS} substitutions; use fewer")
        if reference is None:
            raise _UnresolvableError("'${' is not closed by '}'; close it, or write '$${' for a literal '${'")
        scheme, colon, name = reference.partition(":")
        if colon and scheme == "env":
            return self._variable(name)
        if colon and scheme == "file":
            return self._contents(name)
        raise _UnresolvableError(
            f"{quoted(f'${{{reference}}}')} is no substitution: only ${{env:NAME}} and ${{file:PATH}} are; "
            "write '$${' for a literal '${'"
        )

    def _variable(self, name: str) -> str:
        if name not in self.environ:
            raise _UnresolvableError(f"environment variable {quoted(name)} is not set; set it before the start")
        return self.environ[name]

    def _contents(self, name: str) -> str:
        file = self.directory / name
        try:
            text = read_regular_file(file, MAX_VALUE_FILE_BYTES).decode("utf-8")
        except UnreadableFileError as error:
            raise _UnresolvableError(f"file '{file}' of '${{file:…}}' {error}; give the path of a text file") from error
        except UnicodeDecodeError as error:
            raise _UnresolvableError(f"file '{file}' of '${{file:…}}' is not UTF-8; save it as UTF-8 text") from error
        self.files.append(str(file))
        return text.removesuffix("\n").removesuffix("\r")
