"""How a waterfall runs: positions, the ``next`` of each, and when the stage has ended.

``next`` belongs to its position. Calling it again runs everything downstream again; a stage ends only when every
``next()`` that it started has ended; a ``next`` kept and called afterwards raises.

A ``next()`` that a listener has handed to another task is beyond the reach of whoever cancels the stage. It then has
:data:`GRACE` seconds to end; past them the stage ends without it, nothing further of the chain runs, and the host's log
names the plugin.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Coroutine, Generator, Sequence
from typing import Any, Final, Protocol

import trio

from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Event, Listener, describe_answer

_log = logging.getLogger("dsh.events")

#: What a stage that is cancelled has started in other tasks has so many seconds to end.
GRACE: Final = 5.0


class Idling(Protocol):
    """A stage, as far as its end is concerned. Whoever takes ``running`` down to zero sets ``idle``."""

    idle: trio.Event | None

    @property
    def running(self) -> int:
        """How many ``next()`` run at the moment."""


class Resting(Idling, Protocol):
    """A stage that is not waited for for ever."""

    def give_up(self) -> None:
        """The stage ends although something of it still runs."""


async def rest(stage: Resting) -> None:
    """Wait until no ``next()`` of the stage runs any more; not for ever, if the stage is cancelled."""
    try:
        await until_idle(stage)
    except trio.Cancelled:
        with trio.move_on_after(GRACE, shield=True):
            await until_idle(stage)
        if stage.running:
            stage.give_up()
        raise


async def until_idle(stage: Idling) -> None:
    """Wait until nothing of the stage runs any more."""
    while stage.running:
        stage.idle = trio.Event()
        await stage.idle.wait()


def handed_on(listener: Listener, event: str) -> str:
    """What there is to say of a listener whose ``next()`` did not end with its stage."""
    return (
        f"{listener.where} handed its next() of {event!r} to another task, where it goes on although the stage was "
        f"cancelled {GRACE:g} s ago; await next() where the listener runs"
    )


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
        chain.began(next_.index)
        try:
            answer = await chain.run(next_.index)
        finally:
            chain.ended(next_.index)
        next_.answered = True
        next_.answer = answer
        return answer


class Chain:
    """One dispatch of a waterfall."""

    __slots__ = ("_args", "_default", "_event", "_listeners", "_started", "closed", "idle")

    def __init__(self, event: Event, listeners: Sequence[Listener], args: tuple[Any, ...], default: Any) -> None:
        self._event = event
        self._listeners = listeners
        self._args = args
        self._default = default
        self._started: list[int] = []
        self.idle: trio.Event | None = None
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

    @property
    def running(self) -> int:
        """How many ``next()`` run at the moment."""
        return len(self._started)

    def began(self, index: int) -> None:
        """The ``next()`` in front of the listener at ``index`` runs."""
        self._started.append(index)

    def ended(self, index: int) -> None:
        """It has ended."""
        self._started.remove(index)
        if not self._started and self.idle is not None:
            self.idle.set()

    async def close(self) -> None:
        """Wait for every ``next()`` that is still running, then refuse new ones."""
        try:
            await rest(self)
        finally:
            self.closed = True

    def give_up(self) -> None:
        """Tell which listener has let go of its ``next()``."""
        _log.error("%s", handed_on(self._listeners[min(self._started) - 1], self.name))


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
