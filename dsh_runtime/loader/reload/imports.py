"""What a source imports, read from its import statements: those in functions count, those for type checkers do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

_BODIES: Final = ("body", "orelse", "finalbody")


def imports_of(source: bytes, package: str) -> frozenset[str]:
    """The absolute names of the modules that a source may import, given the package that it stands in.

    ``from a import b`` gives ``a`` and ``a.b``, which may be a module or not. A source that is no Python gives nothing.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(name for statement in _statements(tree.body) for name in _names(statement, package))


def with_parents(name: str) -> Iterator[str]:
    """A module and the packages that are imported before it."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    waiting = [*body]
    for statement in waiting:  # The list grows while it is walked.
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif not (isinstance(statement, ast.If) and _is_for_type_checkers(statement.test)):
            waiting += _inner(statement)
        else:
            waiting += statement.orelse


def _inner(statement: ast.stmt) -> Iterator[ast.stmt]:
    for name in _BODIES:
        yield from getattr(statement, name, ())
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield from part.body


def _is_for_type_checkers(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", None)
    return name == "TYPE_CHECKING"


def _names(statement: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
        return
    base = _base(statement, package)
    if base:
        yield base
        yield from (f"{base}.{alias.name}" for alias in statement.names if alias.name != "*")


def _base(statement: ast.ImportFrom, package: str) -> str:
    """The absolute name of what stands between ``from`` and ``import``."""
    if not statement.level:
        return statement.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - statement.level + 1]
    return ".".join([*above, *([statement.module] if statement.module else [])]) if above != [""] else ""
