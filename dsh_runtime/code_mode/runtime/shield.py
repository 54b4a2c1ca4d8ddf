"""Where programs run as the host's own user and nothing else stands between: close what of the host lies in ``/proc``.

A process that is not *dumpable* cannot be traced by others of its user, and its environment, memory and descriptors
cannot be read. It changes the whole process, so it is done only where Landlock is not there to do it for each program.
"""

from __future__ import annotations

import contextlib
from typing import Final

_PR_GET_DUMPABLE: Final = 3
_PR_SET_DUMPABLE: Final = 4


class Shield:
    """Hides this process from others of its user, until it is lowered."""

    def __init__(self) -> None:
        self._before: int | None = None

    def lift(self) -> None:
        """Hide this process."""
        if self._before is None:
            self._before = _dumpable()
            _set_dumpable(0)

    def lower(self) -> None:
        """Leave this process as it was."""
        before, self._before = self._before, None
        if before is not None:
            with contextlib.suppress(OSError):
                _set_dumpable(before)


def _dumpable() -> int:
    from dsh_runtime.code_mode.runtime.child.system import prctl

    return prctl(_PR_GET_DUMPABLE, 0)


def _set_dumpable(value: int) -> None:
    from dsh_runtime.code_mode.runtime.child.system import prctl

    prctl(_PR_SET_DUMPABLE, value)
