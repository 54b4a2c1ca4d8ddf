"""The deadlines of the calls that are running, on one timer for all.

The time that a person takes to answer counts against no tool. A call's own question comes before its deadline begins;
but a body may make calls that have to be asked about, and then its deadline, and those of the calls around it, stand
still until there is an answer.

Strategy: starting a timer for each call would cost more than the rest of the call. So there is one, set for the
earliest deadline. It stays set when that call is over, in time, since the next call's deadline is later as a rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from dsh_hookspecs import AbortSignal, ExecutionToken, ToolExecution

from dsh_plugin_timeout._deadline import Clock, Deadline


class Deadlines:
    """The deadlines of the calls that are running, and which call is nested in which."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._running: set[Deadline] = set()
        self._parents: WeakKeyDictionary[ExecutionToken, ExecutionToken] = WeakKeyDictionary()
        self._set_for = math.inf
        self._stop_timer: Callable[[], None] | None = None
        self._retired = False

    def note(self, call: ExecutionToken, parent: ExecutionToken) -> None:
        """Remember which call one is nested in, whether or not it has a deadline."""
        self._parents[call] = parent

    def start(self, token: ExecutionToken, seconds: float, caller: AbortSignal) -> Deadline:
        """A deadline that runs from now on."""
        deadline = Deadline(token, seconds, caller, self._now)
        self._running.add(deadline)
        if deadline.due < self._set_for:
            self._set_timer(deadline.due)
        return deadline

    def finish(self, deadline: Deadline) -> None:
        """Watch a deadline no longer."""
        self._running.discard(deadline)
        if self._retired and not self._running:
            self._clear_timer()

    def retire(self) -> None:
        """Let the timer go together with the last call."""
        self._retired = True
        if not self._running:
            self._clear_timer()

    @contextmanager
    def held_around(self, call: ToolExecution) -> Iterator[None]:
        """Hold the deadlines of all calls that ``call`` is nested in."""
        around = set(self._around(call))
        held = [deadline for deadline in self._running if deadline.token in around]
        for deadline in held:
            deadline.hold()
        try:
            yield
        finally:
            for deadline in held:
                deadline.release()
                self._set_timer(deadline.due)

    def _around(self, call: ToolExecution) -> Iterator[ExecutionToken]:
        token = call.parent
        while token is not None:
            yield token
            token = self._parents.get(token)

    def _set_timer(self, due: float) -> None:
        if due < self._set_for:
            self._clear_timer()
            self._set_for = due
            self._stop_timer = AbortSignal.timeout(max(due - self._now(), 0)).add_callback(self._tick)

    def _clear_timer(self) -> None:
        stop, self._stop_timer, self._set_for = self._stop_timer, None, math.inf
        if stop is not None:
            stop()

    def _tick(self) -> None:
        self._stop_timer, self._set_for = None, math.inf
        for deadline in tuple(self._running):
            deadline.check()
        time = self._now()
        self._set_timer(min((deadline.due for deadline in self._running if deadline.due > time), default=math.inf))
