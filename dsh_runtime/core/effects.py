"""Effects: what was registered and how to undo it, last first.

A stack holds steps. Each step is undone once, either early by whoever holds the undo that registration gave back, or
when the stack unwinds. A failing step stops neither the others nor gets lost.
"""

from __future__ import annotations

import inspect
import math
import signal
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Any

import trio

from dsh_runtime.core.errors import DisposedError, TeardownTimeoutError

#: What undoes a step: sync, or giving something to await.
UndoStep = Callable[[], Any]


class Step:
    """One undo and what it belongs to. Without ``bounded`` it keeps a deadline of its own."""

    __slots__ = ("bounded", "label", "undo")

    def __init__(self, undo: UndoStep, label: str, *, bounded: bool = True) -> None:
        self.undo = undo
        self.label = label
        self.bounded = bounded


class EffectStack:
    """Undo steps of one owner. ``owner`` is what an error calls it."""

    __slots__ = ("closed", "owner", "steps")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.steps: dict[Step, None] = {}
        self.closed = False

    def push(self, undo: UndoStep, label: str) -> Callable[[], Any]:
        """Keep ``undo`` for later; give back a function that does it now (twice is the same as once).

        Where the undo has to wait, that function gives something to await; what nobody awaits waits for the unwinding.
        """
        step = self.add(undo, label)
        return lambda: self._undo_early([step])

    def add(self, undo: UndoStep, label: str, *, bounded: bool = True) -> Step:
        """Keep ``undo`` for later, as a step that can be dropped."""
        self.check_open(label)
        step = Step(undo, label, bounded=bounded)
        self.steps[step] = None
        return step

    def drop(self, step: Step) -> bool:
        """Forget a step without undoing it; whether it was still there."""
        return self.steps.pop(step, step) is None

    def check_open(self, label: str) -> None:
        """Raise if the owner unloads or has been disposed."""
        if self.closed:
            raise DisposedError(
                f"{self.owner} registers {label}, but has been disposed or is not loaded; register inside apply()"
            )

    def effect(self, setup: Callable[[], Any], label: str) -> Callable[[], Any]:
        """Run ``setup`` and keep its undo: a returned callable, or the steps that a generator yields as it goes."""
        self.check_open(label)
        outcome = setup()
        if outcome is None:
            return _nothing
        if inspect.isgenerator(outcome):
            return self.take_steps(outcome, label)
        if not callable(outcome):
            if inspect.iscoroutine(outcome):
                outcome.close()
            raise TypeError(f"{label} of {self.owner} gives {outcome!r}; return its undo (a callable), or yield undos")
        step = self._keep(outcome, label)
        return lambda: self._undo_early([step])

    def take_steps(self, steps: Generator[Any, Any, Any], label: str) -> Callable[[], Any]:
        """Run a generator and keep each undo that it yields; if it fails, undo what it did so far."""
        kept: list[Step] = []
        try:
            for undo in steps:
                if not callable(undo):
                    raise TypeError(f"{label} of {self.owner} yields {undo!r}; yield a callable that undoes a step")
                kept.append(self._keep(undo, label))
        except BaseException as error:
            errors = self._undo_half_done(steps, kept)
            if errors:
                message = f"{label} of {self.owner} failed, and so did its undo"
                raise BaseExceptionGroup(message, [error, *errors]) from None
            raise
        return lambda: self._undo_early(kept)

    def _keep(self, undo: UndoStep, label: str) -> Step:
        """Keep the undo of what has been done just now; if the setup has ended its own owner, undo it at once."""
        try:
            return self.add(undo, label)
        except DisposedError:
            discard_awaitable(undo())
            raise

    def _undo_half_done(self, generator: Generator[Any, Any, Any], kept: list[Step]) -> list[BaseException]:
        errors: list[BaseException] = []
        try:
            generator.close()
        except BaseException as error:
            errors.append(error)
        # From the first step that has to wait on, the rest stays for the unwinding: here nobody can wait.
        self._undo_ready(kept, errors)
        return errors

    def _undo_early(self, steps: list[Step]) -> Awaitable[None] | None:
        """Undo some steps now, last first; give something to await if one of them has to wait."""
        errors: list[BaseException] = []
        if self._undo_ready(steps, errors):
            return _Rest(self, steps, errors)
        raise_all(errors, f"undoing {self.owner}")
        return None

    def _undo_ready(self, steps: list[Step], errors: list[BaseException]) -> bool:
        """Undo without waiting, last first; whether a step that waits has stopped it (that one stays on the stack)."""
        while steps:
            if not self.drop(steps[-1]):
                steps.pop()
                continue
            waiting = _begin(steps[-1], errors)
            if waiting is not None:
                steps[-1].undo = _giving(waiting)
                self.steps[steps[-1]] = None
                return True
            steps.pop()
        return False

    def unwind_ready(self, errors: list[BaseException]) -> bool:
        """Undo everything that need not wait, last first; whether something is left, which waits."""
        return self._undo_ready(list(self.steps), errors)

    async def unwind(self, seconds: float) -> list[BaseException]:
        """Undo everything, last first, in the caller's shielded scope; give back what failed.

        When the steps together have waited for ``seconds``, the waiting one is cancelled and counts as failed; the
        rest still runs, without time to wait.
        """
        errors: list[BaseException] = []
        while self.steps:
            step, _ = self.steps.popitem()
            began = trio.current_time()
            await self._undo(step, began + seconds if step.bounded else math.inf, errors)
            if step.bounded:
                seconds = max(0.0, seconds - (trio.current_time() - began))
        return errors

    async def _undo(self, step: Step, deadline: float, errors: list[BaseException]) -> None:
        waiting = _begin(step, errors)
        if waiting is None:
            return
        try:
            with trio.CancelScope(deadline=deadline) as scope:
                await waiting
            if scope.cancelled_caught:
                raise TeardownTimeoutError(
                    f"undoing {step.label} of {self.owner} did not end before the deadline; let it end when cancelled"
                )
        except (trio.Cancelled, GeneratorExit):
            raise
        except BaseException as error:
            errors.append(error)


class _Rest:
    """Awaits the steps that have to wait; dropped, they stay on the stack."""

    __slots__ = ("_errors", "_stack", "_steps")

    def __init__(self, stack: EffectStack, steps: list[Step], errors: list[BaseException]) -> None:
        self._stack = stack
        self._steps = steps
        self._errors = errors

    def __await__(self) -> Generator[Any, Any, None]:
        return self._run().__await__()

    async def _run(self) -> None:
        while self._steps:
            step = self._steps.pop()
            if self._stack.drop(step):
                await self._stack._undo(step, math.inf, self._errors)
        raise_all(self._errors, f"undoing {self._stack.owner}")


def _begin(step: Step, errors: list[BaseException]) -> Awaitable[Any] | None:
    """Begin one undo; give back what it has to wait for."""
    try:
        outcome = step.undo()
    except (trio.Cancelled, GeneratorExit):
        raise
    except BaseException as error:
        errors.append(error)
        return None
    return outcome if isinstance(outcome, Awaitable) else None


def _giving(waiting: Awaitable[Any]) -> UndoStep:
    return lambda: waiting


def discard_awaitable(outcome: object) -> None:
    """Close a coroutine that nobody is going to await."""
    if inspect.iscoroutine(outcome):
        outcome.close()


def raise_all(errors: Iterable[BaseException], subject: str) -> None:
    """Raise the only error there is, or all of them as one group; nothing for none."""
    found = list(errors)
    if len(found) == 1:
        raise found[0]
    if found:
        raise BaseExceptionGroup(f"{subject} failed in {len(found)} places", found)


def is_ordinary(error: BaseException) -> bool:
    """Whether an error is a failure that can be contained: no interrupt, no cancellation, no group that holds one."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_ordinary(member) for member in error.exceptions)
    return not isinstance(error, (KeyboardInterrupt, trio.Cancelled, GeneratorExit))


def may_be_the_users() -> bool:
    """Whether a keyboard interrupt that comes up now can be the user's own.

    It is raised by Python's or trio's handler of SIGINT. Where somebody else handles the signal, only code raises it.
    """
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or str(getattr(handler, "__module__", "")).startswith("trio.")


def _nothing() -> None:
    """The undo of what needs none."""
