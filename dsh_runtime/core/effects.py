"""Effects: what was registered and how to undo it, last first.

A stack holds steps. Each step is undone once, either early by whoever holds the undo that registration gave back, or
when the stack unwinds. A failing step stops neither the others nor gets lost.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import trio

from dsh_runtime.core.errors import DisposedError, TeardownTimeout

#: What undoes a step: sync, or giving something to await.
UndoStep = Callable[[], Any]


class Step:
    """One undo and what it belongs to."""

    __slots__ = ("label", "undo")

    def __init__(self, undo: UndoStep, label: str) -> None:
        self.undo = undo
        self.label = label


class EffectStack:
    """Undo steps of one owner. ``owner`` is what an error calls it."""

    __slots__ = ("closed", "owner", "steps")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.steps: dict[Step, None] = {}
        self.closed = False

    def push(self, undo: UndoStep, label: str) -> Callable[[], Any]:
        """Keep ``undo`` for later; give back a function that does it now (twice is the same as once)."""
        step = self.add(undo, label)

        def undo_now() -> Any:
            return step.undo() if self.drop(step) else None

        return undo_now

    def add(self, undo: UndoStep, label: str) -> Step:
        """Keep ``undo`` for later, as a step that can be dropped."""
        self.check_open(label)
        step = Step(undo, label)
        self.steps[step] = None
        return step

    def drop(self, step: Step) -> bool:
        """Forget a step without undoing it; whether it was still there."""
        return self.steps.pop(step, step) is None

    def check_open(self, label: str) -> None:
        """Raise if the owner has been disposed."""
        if self.closed:
            raise DisposedError(f"{self.owner} registers {label}, but has been disposed; register inside apply()")

    def effect(self, setup: Callable[[], Any], label: str) -> Callable[[], Any]:
        """Run ``setup`` and keep its undo: a returned callable, or the steps that a generator yields as it goes."""
        self.check_open(label)
        outcome = setup()
        if outcome is None:
            return self.push(_nothing, label)
        if inspect.isgenerator(outcome):
            return self._generator_effect(outcome, label)
        if not callable(outcome):
            if inspect.iscoroutine(outcome):
                outcome.close()
            raise TypeError(f"{label} of {self.owner} gives {outcome!r}; return its undo (a callable), or yield undos")
        return self.push(outcome, label)

    def _generator_effect(self, steps: Generator[Any, None, None], label: str) -> Callable[[], Any]:
        done = EffectStack(f"{self.owner}: {label}")
        try:
            for undo in steps:
                if not callable(undo):
                    raise TypeError(f"{label} of {self.owner} yields {undo!r}; yield a callable that undoes a step")
                done.push(undo, label)
        except BaseException as error:
            errors = done.unwind_sync()
            if errors:
                raise BaseExceptionGroup(f"{label} of {self.owner} failed, and so did its undo", [error, *errors]) from None
            raise
        return self.push(lambda: unwind_all(done, 10.0), label)

    def unwind_ready(self, errors: list[BaseException]) -> Awaitable[Any] | None:
        """Undo without waiting, last first, up to the first step that has to wait; give that one back."""
        while self.steps:
            step, _ = self.steps.popitem()
            try:
                outcome = step.undo()
            except (Exception, SystemExit) as error:
                errors.append(error)
                continue
            if isinstance(outcome, Awaitable):
                return outcome
        return None

    def unwind_sync(self) -> list[BaseException]:
        """Undo everything without waiting; what can only be awaited counts as an error."""
        errors: list[BaseException] = []
        while (waiting := self.unwind_ready(errors)) is not None:
            if inspect.iscoroutine(waiting):
                waiting.close()
            errors.append(TypeError(f"an undo of {self.owner} is async; it cannot run here"))
        return errors

    async def unwind(self, deadline: float) -> list[BaseException]:
        """Undo everything, last first, in the caller's shielded scope; give back what failed.

        Past ``deadline`` (trio's clock) a waiting step is cancelled and counts as failed; the rest still runs.
        """
        errors: list[BaseException] = []
        while self.steps:
            step, _ = self.steps.popitem()
            await self._undo(step, deadline, errors)
        return errors

    async def _undo(self, step: Step, deadline: float, errors: list[BaseException]) -> None:
        try:
            outcome = step.undo()
            if not isinstance(outcome, Awaitable):
                return
            with trio.CancelScope(deadline=deadline) as scope:
                await outcome
            if scope.cancelled_caught:
                raise TeardownTimeout(f"undoing {step.label} of {self.owner} did not end before the deadline")
        except (Exception, SystemExit) as error:
            errors.append(error)
        except BaseExceptionGroup as group:
            errors.append(group)


async def unwind_all(stack: EffectStack, seconds: float) -> None:
    """Undo a whole stack; raise what failed, several failures as one exception group."""
    raise_all(await stack.unwind(trio.current_time() + seconds), f"undoing {stack.owner}")


def raise_all(errors: list[BaseException], subject: str) -> None:
    """Raise the only error there is, or all of them as one group; nothing for none."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup(f"{subject} failed in {len(errors)} places", errors)


def _nothing() -> None:
    """The undo of what needs none."""
