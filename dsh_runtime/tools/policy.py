"""The two decision stages, `tools/pre-execute` and `tools/post-execute`.

Both run a chain in which a listener that has received an answer from ``next()`` answers for what lies behind it, and
of a listener that has not, the listeners behind are still heard and the stricter answer stands. They differ in their
answers, in what is stricter, and in that ``Deny`` cuts the chain short.

A failure is no decision: it is kept, and fails the call whatever a listener in front answers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from types import CoroutineType
from typing import Any, Final, NamedTuple, TypeAlias

import trio
from attrs import evolve
from dsh_hookspecs import UNSET, Accept, Allow, Ask, Block, Deny

from dsh_runtime.core.chain import discard
from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Listener
from dsh_runtime.tools.failures import ORDINARY, ListenerFailed, message_of, sole

ALLOW: Final = Allow()
ACCEPT: Final = Accept()


class Ruling(NamedTuple):
    """A decision and the listener that made it (``None``: the end of the chain)."""

    decision: Any
    listener: Listener | None


Merge: TypeAlias = Callable[[Ruling, Ruling], Ruling]


class Stage(NamedTuple):
    """What makes a decision stage: its event, the end of its chain, its answers, what is stricter, what cuts it."""

    event: str
    default: Any
    problem: Callable[[Any], str | None]
    merge: Merge
    cuts: type | None


class PolicyNext:
    """The ``next`` of one position; what it gives is itself, and runs when it is awaited."""

    __slots__ = ("_chain", "_index", "answered", "ruling")

    def __init__(self, chain: PolicyChain, index: int) -> None:
        self._chain = chain
        self._index = index
        self.answered = False
        self.ruling: Ruling | None = None

    def __call__(self) -> PolicyNext:
        if self._chain.closed:
            raise HookError(
                f"next() of {self._chain.stage.event!r} is called after its stage has ended; "
                "call it before the listener returns"
            )
        return self

    def __await__(self) -> Generator[Any, Any, Any]:
        chain = self._chain
        if chain.closed:
            self()
        if self._index == chain.count:
            ruling = chain.end
        else:
            running = chain.current
            chain.running += 1
            try:
                ruling = yield from chain.run(self._index).__await__()
            finally:
                chain.ended()
                chain.current = running
        self.answered = True
        self.ruling = ruling
        return ruling.decision


class PolicyChain:
    """One dispatch of a decision stage."""

    __slots__ = ("_args", "_idle", "_listeners", "closed", "count", "current", "end", "failed", "running", "stage")

    def __init__(self, stage: Stage, listeners: Sequence[Listener], args: tuple[Any, ...]) -> None:
        self.stage = stage
        self._listeners = listeners
        self._args = args
        self.count = len(listeners)
        self.end = Ruling(stage.default, None)
        self.failed: ListenerFailed | None = None
        self.current: Listener | None = None
        self.running = 0
        self.closed = False
        self._idle: trio.Event | None = None

    async def run(self, index: int) -> Ruling:
        """Run the listeners from ``index`` on, and give the answer that stands."""
        listener = self._listeners[index]
        self.current = listener
        next_ = PolicyNext(self, index + 1)
        try:
            answer = listener.call(*self._args, next_)
            if type(answer) is CoroutineType or hasattr(answer, "__await__"):
                answer = await answer
        except ORDINARY as error:
            raise self._fail(listener, error) from error
        except BaseExceptionGroup as group:
            # Cancelled mixed with an error: the error counts, the cancellation goes on its way.
            self._fail(listener, group)
            raise
        problem = self.stage.problem(answer)
        if problem is not None:
            discard(answer)
            raise self._fail(listener, None, f"answered with {answer!r:.200}; {problem}")
        if next_.answered:
            ruling = next_.ruling
            assert ruling is not None
            return ruling if ruling.decision is answer else Ruling(answer, listener)
        ruling = Ruling(answer, listener)
        if type(answer) is self.stage.cuts or index + 1 == self.count:
            return ruling
        return self.stage.merge(ruling, await self.run(index + 1))

    def ended(self) -> None:
        """One ``next()`` has ended."""
        self.running -= 1
        if self.running == 0 and self._idle is not None:
            self._idle.set()

    async def rest(self) -> None:
        """Wait for every ``next()`` that is still running, then refuse new ones."""
        with trio.CancelScope(shield=True):
            while self.running:
                self._idle = trio.Event()
                await self._idle.wait()
        self.closed = True

    def timed_out(self, seconds: float) -> ListenerFailed:
        """The failure of a stage that did not end in time, naming the listener that was running."""
        listener = self.current
        where = listener.where if listener is not None else "a listener"
        plugin = listener.plugin if listener is not None else None
        return ListenerFailed(plugin, f"{where} did not answer {self.stage.event!r} within {seconds:g} s")

    def _fail(self, listener: Listener, error: BaseException | None, what: str = "") -> ListenerFailed:
        if isinstance(error, ListenerFailed):
            return error
        if error is not None:
            cause = sole(error)
            what = f"raised {type(cause).__name__}: {message_of(cause)}"
        failed = ListenerFailed(listener.plugin, f"{listener.where} on {self.stage.event!r} {what}", error)
        if self.failed is None:
            self.failed = failed
        return failed


async def decide(stage: Stage, listeners: Sequence[Listener], args: tuple[Any, ...], timeout: float | None) -> Ruling:
    """Run a decision stage; :class:`ListenerFailed` if any listener failed or the stage took too long."""
    if not listeners:
        return Ruling(stage.default, None)
    chain = PolicyChain(stage, listeners, args)
    try:
        if timeout is None:
            ruling = await chain.run(0)
        else:
            with trio.move_on_after(timeout) as scope:
                ruling = await chain.run(0)
            if scope.cancel_called:
                raise chain.timed_out(timeout)
    finally:
        if chain.running:
            await chain.rest()
        chain.closed = True
    if chain.failed is not None:
        raise chain.failed
    return ruling


def _pre_problem(answer: Any) -> str | None:
    kind = type(answer)
    if kind is Allow or (kind is Ask and (answer.reason is None or isinstance(answer.reason, str))):
        return None
    if kind is Deny and isinstance(answer.reason, str) and answer.reason:
        return None
    return "return Allow(), Deny(reason) with a reason, Ask(reason), or what next() gave"


def _post_problem(answer: Any) -> str | None:
    kind = type(answer)
    if kind is Block:
        return None
    if kind is not Accept:
        return "return Accept(), Accept(content=…), Accept(value=…), Block(feedback), or what next() gave"
    if answer.content is not None and answer.value is not UNSET:
        return "give content or value, not both"
    return None


_PRE_STRENGTH: Final = {Allow: 0, Ask: 1, Deny: 2}


def _stricter(front: Ruling, behind: Ruling) -> Ruling:
    strength = _PRE_STRENGTH
    return behind if strength[type(behind.decision)] > strength[type(front.decision)] else front


def _post_strength(decision: Any) -> int:
    if type(decision) is Block:
        return 3
    if decision.value is not UNSET:
        return 2
    return 1 if decision.content is not None else 0


def _stronger(front: Ruling, behind: Ruling) -> Ruling:
    """The stronger of two answers, with the contexts of both."""
    stands = behind if _post_strength(behind.decision) > _post_strength(front.decision) else front
    contexts = (*front.decision.additional_contexts, *behind.decision.additional_contexts)
    if len(contexts) == len(stands.decision.additional_contexts):
        return stands
    return Ruling(evolve(stands.decision, additional_contexts=contexts), stands.listener)


PRE: Final = Stage("tools/pre-execute", ALLOW, _pre_problem, _stricter, Deny)
POST: Final = Stage("tools/post-execute", ACCEPT, _post_problem, _stronger, None)
