"""Raises in a chosen line of a plugin's own code: what would happen if that line failed?

A policy fails open where it catches a failure of its own and lets the call through. Whoever wrote it believes that the
line cannot fail; so every line has to, once. The headers of blocks that see to their own end do not: nothing fails at a
``try:``, and that of a ``with`` is traced once more when the body has ended, before the exit is called.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Sequence
from functools import lru_cache
from types import FrameType, TracebackType
from typing import Any

from dsh_runtime.loader.ownership import is_within
from dsh_runtime.testing.checks.tampering import Sabotage


class Fault:
    """While in force, raises before the nth line that runs in some files (``at=None``: counts them only)."""

    def __init__(self, roots: Sequence[str], at: int | None) -> None:
        self._roots = roots
        self._at = at
        self._known: dict[str, bool] = {}
        self._before: Any = None
        self.lines = 0
        #: Where it has raised.
        self.place: str | None = None

    def __enter__(self) -> Fault:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if self._is_theirs(frame.f_code.co_filename) else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_lineno not in _headers_of(frame.f_code.co_filename):
            self.lines += 1
            if self.lines == self._at:
                self.place = f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno}"
                raise Sabotage(f"sabotage by a check at {self.place}")
        return self._line

    def _is_theirs(self, filename: str) -> bool:
        theirs = self._known.get(filename)
        if theirs is None:
            theirs = self._known[filename] = is_within(filename, self._roots)
        return theirs


@lru_cache
def _headers_of(filename: str) -> frozenset[int]:
    """The lines of a file at which a ``with`` or ``try`` begins."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:  # What runs is not what the file says now.
        return frozenset()
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With | ast.AsyncWith | ast.Try | ast.TryStar)]
    return frozenset(line for node in blocks for line in range(node.lineno, node.body[0].lineno))
