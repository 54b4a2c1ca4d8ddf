"""The story of a call: which listener was asked at which stage, what it said, in which order, how long it took.

A host that keeps no record takes no notes and pays nothing for them: only where a journal is installed does a call have
a list for them. A note is a plain tuple, made once its listener has answered, for each call makes several. It keeps
words, not answers: those may be large. What a story reads like is worked out by whoever reads it: the order of asking,
and the time that was a listener's own, without what lay behind its ``next()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeAlias, overload

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

from dsh_runtime.tools.failures import clean, message_of, sole
from dsh_runtime.values.compact import dump

#: An answer in one word, and its detail.
Words: TypeAlias = "tuple[str, str | None]"
#: Stage, plugin, listener, answer, and when it began and ended.
Note: TypeAlias = "tuple[str, str | None, str | None, Words, float, float]"

PASS: Final[Words] = ("pass", None)
SUCCESS: Final[Words] = ("success", None)
UNANSWERED: Final[Words] = ("unanswered", None)
_MAX_DETAIL: Final = 500
_began: Final = itemgetter(0)


class Story(Sequence[dict[str, JsonValue]]):
    """The steps of one call in the order of asking, as the log keeps them; made of its notes when first looked at."""

    __slots__ = ("_notes", "_steps")

    def __init__(self, notes: Sequence[Note]) -> None:
        self._notes = notes
        self._steps: list[dict[str, JsonValue]] | None = None

    @property
    def detailed(self) -> bool:
        """Whether any step has a detail."""
        for note in self._notes:  # noqa: SIM110 - a generator costs more than the loop
            if note[3][1] is not None:
                return True
        return False

    def as_json(self) -> list[dict[str, JsonValue]]:
        """All steps; times in milliseconds."""
        if self._steps is None:
            self._steps = [_step(note, round(ms, 3)) for _, ms, note in _timed(self._notes)]
        return self._steps

    def as_text(self) -> str:
        """The JSON text of a story that is not :attr:`detailed`."""
        steps = [f"{_beginning(note[:4])}{ms:.3f}}}" for _, ms, note in _timed(self._notes)]
        return f"[{','.join(steps)}]"

    def __len__(self) -> int:
        return len(self._notes)

    @overload
    def __getitem__(self, index: int) -> dict[str, JsonValue]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, JsonValue]]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.as_json()[index]

    def __repr__(self) -> str:
        return f"<Story {self.as_json()!r}>"


def _timed(notes: Sequence[Note]) -> list[tuple[float, float, Note]]:
    """When each note began, its milliseconds without those of the notes within it, and the note; in order of asking.

    Notes are made when they end, so what lies within one stands before it.
    """
    told: list[tuple[float, float, Note]] = []
    before: list[tuple[float, float]] = []
    for note in notes:
        began = note[4]
        own = took = note[5] - began
        while before and before[-1][0] >= began:
            own -= before.pop()[1]
        before.append((began, took))
        told.append((began, own * 1e3 if own > 0 else 0.0, note))
    told.reverse()  # Of two that began at once, the one around the other comes first.
    told.sort(key=_began)
    return told


def _step(note: Note, ms: float) -> dict[str, JsonValue]:
    stage, plugin, listener, (word, detail), *_ = note
    step: dict[str, JsonValue] = {"stage": stage}
    for name, value in (("plugin", plugin), ("listener", listener)):
        if value is not None:
            step[name] = value
    step["answer"], step["ms"] = word, ms
    if detail is not None:
        step["detail"] = clean(detail)[:_MAX_DETAIL]
    return step


@lru_cache(1024)
def _beginning(said: tuple[str, str | None, str | None, Words]) -> str:
    """The text of a step up to its time: few calls differ in it."""
    return dump(_step((*said, 0.0, 0.0), 0))[: -len("0}")]


def raised(error: BaseException) -> Words:
    """The words of a listener that raised."""
    return "raised", message_of(sole(error))


def _accepting(answer: Accept) -> str:
    if answer.value is not UNSET:
        return "accept-value"
    if answer.content is not None:
        return "accept-content"
    if answer.deferred_contexts is not None:
        return "accept-contexts"
    return "accept-message" if answer.error_message is not None else "accept"


def describe(answer: Any) -> Words:
    """A decision or result in words."""
    if isinstance(answer, Allow):
        return "allow", None
    if isinstance(answer, (Deny, Ask)):
        return type(answer).__name__.lower(), answer.reason if isinstance(answer.reason, str) else None
    if isinstance(answer, Accept):
        return _accepting(answer), None
    if isinstance(answer, Block):
        return "block", answer.feedback if isinstance(answer.feedback, str) else None
    if isinstance(answer, ToolExecutionSuccess):
        return SUCCESS
    if isinstance(answer, ToolExecutionFailure):
        return "failure", answer.error.message
    return "rubbish", type(answer).__name__
