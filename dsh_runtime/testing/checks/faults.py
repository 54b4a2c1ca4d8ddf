"""Raises in a chosen line of a plugin's own code: what would happen if that line failed?

A policy fails open where it catches a failure of its own and lets the call through. Whoever wrote it believes that the
line cannot fail; so every line has to, once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
        if event == "line":
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
