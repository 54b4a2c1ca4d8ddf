"""The story of a call: which listener was asked at which stage, what it said, in which order, how long it took.

A host that keeps no record takes no notes and pays nothing for them: only where a journal is installed does a call have
a list for them. A note is a plain tuple, made once its listener has answered, for each call makes several. It keeps
words, not answers: those may be large. What a story reads like is worked out by whoever reads it: the order of asking,
and the time that was a listener's own, without what lay behind its ``next()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

#: An answer in one word, and its detail.
Words: TypeAlias = "tuple[str, str | None]"
#: Stage, plugin, listener, answer, and when it began and ended.
Note: TypeAlias = "tuple[str, str | None, str | None, Words, float, float]"

PASS: Final[Words] = ("pass", None)
SUCCESS: Final[Words] = ("success", None)
UNANSWERED: Final[Words] = ("unanswered", None)
_MAX_DETAIL: Final = 500


class Story(Sequence[dict[str, JsonValue]]):
    """The steps of one call in the order of asking, as the log keeps them; made of its notes when first looked at."""

    __slots__ = ("_notes", "_steps")

    def __init__(self, notes: Sequence[Note]) -> None:
        self._notes = notes
        self._steps: list[dict[str, JsonValue]] | None = None

    def as_json(self) -> list[dict[str, JsonValue]]:
        """All steps; times in milliseconds."""
        if self._steps is None:
            self._steps = [_step(note, seconds) for note, seconds in _with_own_time(self._notes)]
        return self._steps

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


def _with_own_time(notes: Iterable[Note]) -> Iterable[tuple[Note, float]]:
    """The notes in the order in which they began, each with its time without that of the notes within it."""
    ordered = sorted(notes, key=_began)
    own = [ended - began for *_, began, ended in ordered]
    around: list[int] = []
    for index, (*_, began, ended) in enumerate(ordered):
        while around and ordered[around[-1]][5] < ended:
            around.pop()
        if around:
            own[around[-1]] -= ended - began
        around.append(index)
    return zip(ordered, own, strict=True)


def _began(note: Note) -> tuple[float, float]:
    """Where a note stands; of two that began at once, the one around the other comes first."""
    return note[4], -note[5]


def _step(note: Note, seconds: float) -> dict[str, JsonValue]:
    stage, plugin, listener, (word, detail), *_ = note
    step: dict[str, JsonValue] = {"stage": stage, "answer": word, "ms": round(max(seconds, 0.0) * 1e3, 3)}
    if plugin is not None:
        step["plugin"] = plugin
    if listener is not None:
        step["listener"] = listener
    if detail is not None:
        step["detail"] = clean(detail)[:_MAX_DETAIL]
    return step


def raised(error: BaseException) -> Words:
    """The words of a listener that raised."""
    return "raised", message_of(sole(error))


def describe(answer: Any) -> Words:
    """A decision or result in words."""
    if isinstance(answer, Allow):
        return "allow", None
    if isinstance(answer, (Deny, Ask)):
        return type(answer).__name__.lower(), answer.reason if isinstance(answer.reason, str) else None
    if isinstance(answer, Accept):
        return ("accept-value" if answer.value is not UNSET else "accept-content" if answer.content else "accept"), None
    if isinstance(answer, Block):
        return "block", answer.feedback if isinstance(answer.feedback, str) else None
    if isinstance(answer, ToolExecutionSuccess):
        return SUCCESS
    if isinstance(answer, ToolExecutionFailure):
        return "failure", answer.error.message
    return "rubbish", type(answer).__name__
