"""The two decision stages, `tools/pre-execute` and `tools/post-execute`.

Both run a chain in which a listener that has received an answer from ``next()`` answers for what lies behind it, and
of a listener that has not, the listeners behind are still heard and the stricter answer stands. They differ in their
answers, in what is stricter, and in that ``Deny`` cuts the chain short.

A failure is no decision: it is kept, and fails the call whatever a listener in front answers.
"""

from __future__ import annotations

import logging
import types
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from time import perf_counter
from types import CoroutineType, GeneratorType
from typing import Any, Final, TypeAlias

import trio
from attrs import evolve, frozen
from dsh_hookspecs import UNSET, Accept, Allow, Ask, Block, Deny

from dsh_runtime.core.chain import discard, handed_on, rest
from dsh_runtime.core.errors import HookError
from dsh_runtime.core.events import Listener
from dsh_runtime.tools.execution import Execution
from dsh_runtime.tools.failures import ListenerFailed, failing, message_of, outward, shown, sole
from dsh_runtime.tools.scope import within
from dsh_runtime.tools.story import PASS, Note, describe, raised

_log = logging.getLogger("dsh.tools")

#: A decision and the listener that made it (``None``: the end of the chain). A plain tuple: read on every call.
Ruling: TypeAlias = tuple[Any, Listener | None]
Merge: TypeAlias = Callable[[Ruling, Ruling], Ruling]


@frozen(eq=False)
class Stage:
    """What makes a decision stage: its event, the end of its chain, its answers, what is stricter, what cuts it."""

    event: str
    end: Ruling
    answers: tuple[type, ...]
    problem: Callable[[Any], str | None]
    merge: Merge
    cuts: type | None


class PolicyChain:
    """One dispatch of a decision stage.

    What ``next()`` gives is a generator-based coroutine: it runs when awaited, and one that is dropped leaves nothing
    behind. Its ruling goes into the listener's cell, so that whoever runs the listener knows whether it has received an
    answer. Nothing stands behind the last listener: its ``next`` gives the end at once and needs no cell.
    """

    __slots__ = (
        "_count",
        "_end",
        "_exec",
        "_listeners",
        "_notes",
        "_result",
        "closed",
        "current",
        "failed",
        "idle",
        "running",
        "stage",
    )

    def __init__(
        self,
        stage: Stage,
        listeners: Sequence[Listener],
        exec: Execution,
        result: Any = None,
        notes: list[Note] | None = None,
    ) -> None:
        self.stage = stage
        self._end = stage.end[0]
        self._listeners = listeners
        self._count = len(listeners)
        self._exec = exec
        self._result = result
        self._notes = notes
        self.failed: ListenerFailed | None = None
        self.current: Listener | None = None
        self.running = 0
        self.closed = False
        self.idle: trio.Event | None = None

    def decide(self, timeout: float | None, cell: list[Ruling]) -> Awaitable[Any]:
        """Run the stage and put its ruling in ``cell``.

        :class:`ListenerFailed` if any listener failed or the stage took too long.
        """
        return self._run(0, cell) if timeout is None else self._within(timeout, cell)

    async def _within(self, timeout: float, cell: list[Ruling]) -> None:
        scope = await within(self._run(0, cell), timeout)
        if scope is not None and scope.cancel_called:
            raise self._left_behind() if self.running else self._timed_out(timeout)

    def _next(self, index: int, cell: list[Ruling]) -> Awaitable[Any]:
        """What ``next()`` of the listener in front of ``index`` gives."""
        if self.closed:
            raise self._too_late()
        return self._run(index, cell)

    def _last(self) -> Awaitable[Any]:
        """What ``next()`` of the last listener gives."""
        if self.closed:
            raise self._too_late()
        return self._give_end()

    @types.coroutine
    def _give_end(self) -> Generator[Any, Any, Any]:
        if self.closed:
            raise self._too_late()
        return self._end
        yield

    @types.coroutine
    def _run(self, index: int, cell: list[Ruling]) -> Generator[Any, Any, Any]:
        """Run the listeners from ``index`` on; give the decision that stands, and put its ruling in ``cell``."""
        if self.closed:
            raise self._too_late()
        listener = self.current = self._listeners[index]
        behind = index + 1
        last = behind == self._count
        heard: list[Ruling] = []
        notes = self._notes
        began = perf_counter() if notes is not None else 0.0
        answered = False
        self.running += 1
        try:
            answer = self._ask(listener, self._last if last else partial(self._next, behind, heard))
            if type(answer) is CoroutineType or type(answer) is GeneratorType:
                answer = yield from answer  # type: ignore[misc]  # a generator-based coroutine may
            if answer is self._end:
                ruling = self.stage.end
            else:
                if type(answer) not in self.stage.answers:
                    answer = yield from settled(answer)
                answered = True
                ruling = heard[-1] if heard and heard[-1][0] is answer else self._checked(listener, answer)
            if notes is not None:
                words = PASS if ruling[1] is not listener else describe(answer)
                notes.append((self.stage.event, listener.plugin, listener.name, words, began, perf_counter()))
                notes = None
            if not (heard or last) and type(answer) is not self.stage.cuts:
                # The listener has heard nothing of those behind it: they are heard all the same.
                yield from self._run(behind, heard)
                ruling = self.stage.merge(ruling, heard[-1])
        except ListenerFailed as failed:
            if notes is not None:
                words = describe(answer) if answered else raised(failed)
                notes.append((self.stage.event, listener.plugin, listener.name, words, began, perf_counter()))
            self.failed = self.failed or failed
            raise
        except BaseException as error:
            if notes is not None:
                notes.append((self.stage.event, listener.plugin, listener.name, raised(error), began, perf_counter()))
            # Cancelled mixed with an error: the error counts, the cancellation goes on its way.
            goes_on = outward(error)
            if goes_on is None:
                raise self._fail(listener, error) from error
            if failing(error):
                self._fail(listener, error)
            raise goes_on from None
        finally:
            self.running -= 1
            if index == 0:
                # The stage ends when every next() that it started has ended.
                if self.running:
                    yield from self._rest().__await__()
                self.closed = True
            elif self.idle is not None and not self.running:
                self.idle.set()
        if index == 0 and self.failed is not None:
            raise self.failed
        self.current = listener
        cell.append(ruling)
        return ruling[0]

    def _ask(self, listener: Listener, following: Callable[[], Any]) -> Any:
        if self._result is None:
            return listener.call(self._exec, following)
        return listener.call(self._exec, self._result, following)

    def _checked(self, listener: Listener, answer: Any) -> Ruling:
        """The ruling of a listener that gives an answer of its own, or plainly what the end of the chain gave."""
        if answer is self.stage.end[0]:
            return self.stage.end
        problem = self.stage.problem(answer)
        if problem is not None:
            discard(answer)
            raise self._fail(listener, None, f"answered with {shown(answer)}; {problem}")
        return answer, listener

    def _too_late(self) -> HookError:
        return HookError(
            f"next() of {self.stage.event!r} is called after its stage has ended; call it before the listener returns"
        )

    async def _rest(self) -> None:
        """Wait for every ``next()`` that is still running, then refuse new ones."""
        try:
            await rest(self)
        finally:
            self.closed = True

    def give_up(self) -> None:
        """The stage ends, and fails, although a listener goes on in a task that the stage does not reach."""
        _log.error("%s", self._left_behind())

    def _left_behind(self) -> ListenerFailed:
        """The failure of a stage that ends although something of it still runs, naming who has let go of it."""
        running = self.current
        index = self._listeners.index(running) if running is not None else 0
        front = self._listeners[max(0, index - 1)]
        return ListenerFailed(front.plugin, handed_on(front, self.stage.event))

    def _timed_out(self, seconds: float) -> ListenerFailed:
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


@types.coroutine
def settled(answer: Any) -> Generator[Any, Any, Any]:
    """Await an answer for as long as it has to be: a listener may return what ``next()`` gave without awaiting it."""
    while True:
        kind = type(answer)
        if kind is GeneratorType or kind is CoroutineType:
            answer = yield from answer
        elif hasattr(answer, "__await__"):
            answer = yield from answer.__await__()
        else:
            return answer


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
    message = answer.error_message
    if message is not None and not (isinstance(message, str) and message):
        return "give an error_message that is a text"
    return None


_PRE_STRENGTH: Final = {Allow: 0, Ask: 1, Deny: 2}


def _stricter(front: Ruling, behind: Ruling) -> Ruling:
    strength = _PRE_STRENGTH
    return behind if strength[type(behind[0])] > strength[type(front[0])] else front


def _post_strength(decision: Any) -> int:
    if type(decision) is Block:
        return 3
    if decision.value is not UNSET:
        return 2
    return 1 if decision.content is not None else 0


def _stronger(front: Ruling, behind: Ruling) -> Ruling:
    """The stronger of two answers, with the contexts of both, and with what only the weaker one replaces."""
    stronger, weaker = (behind, front) if _post_strength(behind[0]) > _post_strength(front[0]) else (front, behind)
    decision, listener = stronger
    more: dict[str, Any] = {}
    if type(decision) is Accept:
        replaced = ((part, getattr(weaker[0], part)) for part in ("deferred_contexts", "error_message"))
        more = {part: value for part, value in replaced if value is not None and getattr(decision, part) is None}
    contexts = (*front[0].additional_contexts, *behind[0].additional_contexts)
    if len(contexts) != len(decision.additional_contexts):
        more["additional_contexts"] = contexts
    return (evolve(decision, **more), listener) if more else stronger


PRE: Final = Stage("tools/pre-execute", (Allow(), None), (Allow, Deny, Ask), _pre_problem, _stricter, Deny)
POST: Final = Stage("tools/post-execute", (Accept(), None), (Accept, Block), _post_problem, _stronger, None)
