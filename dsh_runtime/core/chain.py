"""How a waterfall runs: positions, the ``next`` of each, and when the stage has ended.

``next`` belongs to its position. Calling it again runs everything downstream again; a stage ends only when every
``next()`` that it started has ended; a ``next`` kept and called afterwards raises.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Coroutine, Generator, Sequence
from typing import Any

import trio

from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Event, Listener, describe_answer


class Next:
    """What a listener calls to hear what lies behind it."""

    __slots__ = ("answer", "answered", "chain", "index")

    def __init__(self, chain: Chain, index: int) -> None:
        self.chain = chain
        self.index = index
        self.answered = False
        self.answer: Any = None

    def __call__(self) -> Delegation:
        if self.chain.closed:
            raise HookError(
                f"next() of {self.chain.name!r} is called after its stage has ended; "
                "call it before the listener returns"
            )
        return Delegation(self)


class Delegation:
    """What ``next()`` gives: nothing runs until it is awaited, so that a dropped one leaves nothing behind."""

    __slots__ = ("_next",)

    def __init__(self, next_: Next) -> None:
        self._next = next_

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._run().__await__()

    async def _run(self) -> Any:
        next_ = self._next
        chain = next_.chain
        if chain.closed:
            next_()
        chain.running += 1
        try:
            answer = await chain.run(next_.index)
        finally:
            chain.ended()
        next_.answered = True
        next_.answer = answer
        return answer


class Chain:
    """One dispatch of a waterfall."""

    __slots__ = ("_args", "_default", "_event", "_idle", "_listeners", "closed", "running")

    def __init__(self, event: Event, listeners: Sequence[Listener], args: tuple[Any, ...], default: Any) -> None:
        self._event = event
        self._listeners = listeners
        self._args = args
        self._default = default
        self._idle: trio.Event | None = None
        self.running = 0
        self.closed = False

    @property
    def name(self) -> str:
        """The event's name."""
        return self._event.info.name

    async def run(self, index: int) -> Any:
        """Run the listeners from ``index`` on."""
        if index == len(self._listeners):
            return self._default
        listener = self._listeners[index]
        try:
            answer = listener.call(*self._args, Next(self, index + 1))
            while inspect.isawaitable(answer):  # Twice, where an async listener plainly returns ``next()``.
                answer = await answer
            if answer is None or (self._event.info.returns and not isinstance(answer, self._event.info.returns)):
                discard(answer)
                raise HookError(describe_answer(listener, self._event.info, answer))
        except Exception as error:
            _blame(error, listener)
            raise
        return answer

    def ended(self) -> None:
        """One ``next()`` has ended."""
        self.running -= 1
        if self.running == 0 and self._idle is not None:
            self._idle.set()

    async def close(self) -> None:
        """Wait for every ``next()`` that is still running, then refuse new ones."""
        while self.running:
            self._idle = trio.Event()
            with trio.CancelScope(shield=True):
                await self._idle.wait()
        self.closed = True


def discard(answer: object) -> None:
    """Close a coroutine that nobody is going to await."""
    if isinstance(answer, Coroutine):
        answer.close()


def _blame(error: Exception, listener: Listener) -> None:
    """Note on an exception which listener raised it, if nobody behind has been blamed already."""
    if listener_of(error) is None:
        with contextlib.suppress(AttributeError, TypeError):  # An exception may refuse attributes.
            error.__dict__["_dsh_listener"] = listener


def listener_of(error: BaseException) -> Listener | None:
    """The listener that raised an exception out of a waterfall, or ``None``."""
    listener: Listener | None = getattr(error, "_dsh_listener", None)
    return listener
