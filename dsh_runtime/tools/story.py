"""The story of a call: which listener was asked at which stage, what it said, in which order, how long it took.

A host that keeps no record tells no stories and pays nothing for them: only where a journal is installed are the
listeners of a pipeline wrapped by :func:`recording`. A step is begun when its listener is asked, so the order of the
steps is the order of asking; its time is the listener's own, without what lies behind its ``next()``.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Generator
from time import perf_counter
from types import CoroutineType, GeneratorType
from typing import TYPE_CHECKING, Any

from attrs import evolve
from dsh_hookspecs import (
    UNSET,
    Accept,
    Allow,
    Ask,
    Block,
    Deny,
    JsonValue,
    ToolExecutionFailure,
    ToolExecutionSuccess,
)

from dsh_runtime.core.events import Listener
from dsh_runtime.tools.failures import clean, message_of, sole

if TYPE_CHECKING:
    from dsh_runtime.tools.machine import Machine

_MAX_DETAIL = 500


class Step:
    """One thing that happened on the way of a call."""

    __slots__ = ("answer", "behind", "detail", "listener", "plugin", "seconds", "stage", "started")

    def __init__(self, stage: str, plugin: str | None, listener: str | None) -> None:
        self.stage = stage
        self.plugin = plugin
        self.listener = listener
        self.answer = "unanswered"
        self.detail: str | None = None
        self.started = perf_counter()
        self.behind = 0.0
        self.seconds = 0.0

    def end(self, answer: str, detail: str | None = None) -> None:
        """Note what came of it."""
        self.seconds = perf_counter() - self.started - self.behind
        self.answer = answer
        self.detail = None if detail is None else clean(detail)[:_MAX_DETAIL]

    def as_json(self) -> dict[str, JsonValue]:
        """The step as the log keeps it; times in milliseconds."""
        entry: dict[str, JsonValue] = {"stage": self.stage, "answer": self.answer, "ms": round(self.seconds * 1e3, 3)}
        for name in ("plugin", "listener", "detail"):
            value = getattr(self, name)
            if value is not None:
                entry[name] = value
        return entry


class Story:
    """The steps of one call, in the order in which they began."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def begin(self, stage: str, plugin: str | None = None, listener: str | None = None) -> Step:
        """Begin a step."""
        step = Step(stage, plugin, listener)
        self.steps.append(step)
        return step

    def as_json(self) -> list[dict[str, JsonValue]]:
        """All steps as the log keeps them."""
        return [step.as_json() for step in self.steps]


class HeardNext:
    """A listener's ``next`` that remembers what it gave, and how long that took."""

    __slots__ = ("_next", "_step", "answer", "heard")

    def __init__(self, next_: Callable[[], Any], step: Step) -> None:
        self._next = next_
        self._step = step
        self.heard = False
        self.answer: Any = None

    def __call__(self) -> Any:
        return self._run(self._next())

    @types.coroutine
    def _run(self, behind: Any) -> Generator[Any, Any, Any]:
        started = perf_counter()
        try:
            self.answer = yield from _awaiting(behind)
        finally:
            self._step.behind += perf_counter() - started
        self.heard = True
        return self.answer


def recording(machine: Machine, listener: Listener) -> Listener:
    """The same listener, with a step in the call's story each time it is asked."""
    stage, plugin, name = listener.event, listener.plugin, listener.name

    def call(*args: Any) -> Any:
        under_way = machine.calls.get(args[0].token)
        story = under_way.story if under_way is not None else None
        if story is None:
            return listener.call(*args)
        step = story.begin(stage, plugin, name)
        next_ = HeardNext(args[-1], step)
        try:
            answer = listener.call(*args[:-1], next_)
        except BaseException as error:
            step.end("raised", message_of(sole(error)))
            raise
        if type(answer) in (CoroutineType, GeneratorType) or hasattr(answer, "__await__"):
            return _ending(step, answer, next_)
        _end(step, answer, next_)
        return answer

    return evolve(listener, call=call)


@types.coroutine
def _ending(step: Step, awaitable: Any, next_: HeardNext) -> Generator[Any, Any, Any]:
    try:
        answer = awaitable
        while type(answer) in (CoroutineType, GeneratorType) or hasattr(answer, "__await__"):
            answer = yield from _awaiting(answer)
    except BaseException as error:
        step.end("raised", message_of(sole(error)))
        raise
    _end(step, answer, next_)
    return answer


@types.coroutine
def _awaiting(awaitable: Any) -> Generator[Any, Any, Any]:
    if type(awaitable) in (CoroutineType, GeneratorType):
        return (yield from awaitable)
    return (yield from awaitable.__await__())


def _end(step: Step, answer: Any, next_: HeardNext) -> None:
    if next_.heard and answer is next_.answer:
        step.end("pass")
    else:
        step.end(*describe(answer))


def describe(answer: Any) -> tuple[str, str | None]:
    """A decision or result in one word, and its detail."""
    if isinstance(answer, Allow):
        return "allow", None
    if isinstance(answer, (Deny, Ask)):
        return type(answer).__name__.lower(), answer.reason if isinstance(answer.reason, str) else None
    if isinstance(answer, Accept):
        return ("accept-value" if answer.value is not UNSET else "accept-content" if answer.content else "accept"), None
    if isinstance(answer, Block):
        return "block", answer.feedback if isinstance(answer.feedback, str) else None
    if isinstance(answer, ToolExecutionSuccess):
        return "success", None
    if isinstance(answer, ToolExecutionFailure):
        return "failure", answer.error.message
    return "rubbish", type(answer).__name__
