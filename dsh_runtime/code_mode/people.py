"""How long people have been asked about the sub-calls of each program: that time counts against no program.

Questions are heard of as events, and found their program by the calls around the one that is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsh_hookspecs import ApprovalRequest, ExecutionToken, ToolExecution

    from dsh_runtime.tools.call import Call


class Stopwatch:
    """Runs while at least one question is open."""

    def __init__(self) -> None:
        self._open: set[ExecutionToken] = set()
        self._before = 0.0
        self._since = 0.0

    def seconds(self) -> float:
        """For how long it has run so far."""
        running = trio.current_time() - self._since if self._open else 0.0
        return self._before + running

    def asked(self, token: ExecutionToken) -> None:
        """A question about a call is put."""
        if not self._open:
            self._since = trio.current_time()
        self._open.add(token)

    def answered(self, token: ExecutionToken) -> None:
        """The question is over, however."""
        if token in self._open:
            self._before = self.seconds() if len(self._open) == 1 else self._before
            self._open.discard(token)


class People:
    """The stopwatches of the programs that run. ``calls`` are the calls under way."""

    def __init__(self, calls: Mapping[Any, Call]) -> None:
        self._calls = calls
        self._watches: dict[ExecutionToken, Stopwatch] = {}

    @contextmanager
    def watching(self, exec: ToolExecution) -> Iterator[Stopwatch]:
        """The stopwatch of the program of one call, for the body."""
        watch = self._watches[exec.token] = Stopwatch()
        try:
            yield watch
        finally:
            del self._watches[exec.token]

    def asked(self, request: ApprovalRequest) -> None:
        """Listener of ``approval/asked``."""
        for watch in self._around(request):
            watch.asked(request.exec.token)

    def decided(self, request: ApprovalRequest) -> None:
        """Listener of ``approval/decided``."""
        for watch in self._around(request):
            watch.answered(request.exec.token)

    def _around(self, request: ApprovalRequest) -> Iterator[Stopwatch]:
        if not self._watches:
            return
        token = request.exec.parent
        while token is not None:
            if token in self._watches:
                yield self._watches[token]
            around = self._calls.get(token)
            token = around.exec.parent if around is not None else None
