"""Effects: undone once, last first, failures kept."""

# ruff: noqa: ASYNC105  # an undo gives something to await

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime import DisposedError
from dsh_runtime.core.effects import EffectStack, is_ordinary, raise_all
from dsh_runtime.core.errors import TeardownTimeoutError


@pytest.fixture
def stack() -> EffectStack:
    """A stack whose owner has a name."""
    return EffectStack("plugin 'a'")


async def test_unwinding_runs_last_first(stack: EffectStack) -> None:
    log: list[int] = []
    for n in range(3):
        stack.push(lambda n=n: log.append(n), "x")  # type: ignore[misc]
    assert (await stack.unwind(1), log) == ([], [2, 1, 0])


async def test_unwinding_waits_for_what_has_to_wait(stack: EffectStack) -> None:
    log: list[str] = []

    async def undo() -> None:
        await trio.lowlevel.checkpoint()
        log.append("async")

    stack.push(lambda: log.append("sync"), "x")
    stack.push(undo, "y")
    await stack.unwind(1)
    assert log == ["async", "sync"]


async def test_a_step_that_an_undo_adds_while_the_stack_unwinds_is_undone_too(stack: EffectStack) -> None:
    log: list[str] = []
    stack.push(lambda: stack.push(lambda: log.append("added"), "y") and None, "x")
    await stack.unwind(1)
    assert log == ["added"]


async def test_every_failure_is_given_back_in_the_order_of_undoing(stack: EffectStack) -> None:
    def broken(error: BaseException) -> Any:
        def undo() -> None:
            raise error

        return undo

    errors: list[BaseException] = [
        ValueError(),
        SystemExit(),
        KeyboardInterrupt(),
        BaseExceptionGroup("g", [KeyboardInterrupt()]),
    ]
    for error in errors:
        stack.push(broken(error), "x")
    assert await stack.unwind(1) == errors[::-1]


async def test_a_step_past_the_deadline_is_cancelled_and_counts_as_failed(
    stack: EffectStack, autojump_clock: trio.testing.MockClock
) -> None:
    log: list[str] = []
    stack.push(lambda: log.append("after"), "x")
    stack.push(trio.sleep_forever, "the long one")
    [error] = await stack.unwind(3)
    assert isinstance(error, TeardownTimeoutError) and "the long one of plugin 'a'" in str(error)
    assert (log, trio.current_time()) == (["after"], 3)


async def test_a_step_with_a_deadline_of_its_own_does_not_use_up_the_others_time(
    stack: EffectStack, autojump_clock: trio.testing.MockClock
) -> None:
    stack.push(lambda: trio.sleep(2), "x")
    stack.add(lambda: trio.sleep(100), "child", bounded=False)
    assert await stack.unwind(3) == []


def test_a_closed_stack_takes_nothing(stack: EffectStack) -> None:
    stack.closed = True
    with pytest.raises(DisposedError, match="plugin 'a' registers the task, but has been disposed"):
        stack.push(print, "the task")


def test_a_dropped_step_is_not_undone(stack: EffectStack) -> None:
    step = stack.add(lambda: pytest.fail("undone"), "x")
    assert (stack.drop(step), stack.drop(step)) == (True, False)
    assert not stack.unwind_ready([])


def test_unwinding_without_waiting_stops_at_the_first_step_that_waits(stack: EffectStack) -> None:
    log: list[str] = []

    async def waits() -> None:
        log.append("waited")

    stack.push(lambda: log.append("first"), "x")
    stack.push(waits, "y")
    stack.push(lambda: log.append("last"), "z")
    assert stack.unwind_ready([]) and log == ["last"]
    trio.run(stack.unwind, 1)
    assert log == ["last", "waited", "first"]


@given(st.lists(st.sampled_from(["push", "undo", "undo again", "generator", "broken"]), max_size=20), st.data())
def test_whatever_is_undone_early_the_rest_is_undone_once_and_last_first(plan: list[str], data: st.DataObject) -> None:
    stack = EffectStack("x")
    undone: list[int] = []
    undos: list[tuple[list[int], Any]] = []
    expected: list[int] = []
    early: list[int] = []
    count = iter(range(1000))

    def step() -> tuple[int, Any]:
        n = next(count)
        return n, lambda: undone.append(n)

    for what in plan:
        if what == "push":
            n, undo = step()
            undos.append(([n], stack.effect(lambda undo=undo: undo, "x")))  # type: ignore[misc]
            expected.append(n)
        elif what == "generator":
            made = [step() for _ in range(3)]
            undos.append(([n for n, _ in made], stack.effect(lambda made=made: (undo for _, undo in made), "x")))  # type: ignore[misc]
            expected += [n for n, _ in made]
        elif what == "broken":
            made = [step() for _ in range(2)]

            def broken(made: Any = made) -> Any:
                yield made[0][1]
                yield made[1][1]
                raise ValueError

            with pytest.raises(ValueError):
                stack.effect(broken, "x")
            early += [made[1][0], made[0][0]]
        elif undos:
            numbers, undo = undos.pop() if what == "undo" else data.draw(st.sampled_from(undos))
            undo()
            early += [n for n in numbers[::-1] if n in expected]
            expected = [n for n in expected if n not in numbers]
    assert undone == early
    assert trio.run(stack.unwind, 1) == [] and undone == early + expected[::-1]


def test_one_error_is_raised_as_it_is_and_several_as_one_group() -> None:
    raise_all([], "nothing")
    error = ValueError()
    with pytest.raises(ValueError) as one:
        raise_all([error], "one")
    assert one.value is error
    with pytest.raises(BaseExceptionGroup, match="two things failed in 2 places"):
        raise_all([error, error], "two things")


@pytest.mark.parametrize(
    ("error", "ordinary"),
    [
        (ValueError(), True),
        (SystemExit(), True),
        (KeyboardInterrupt(), False),
        (BaseExceptionGroup("g", [ValueError(), SystemExit()]), True),
        (BaseExceptionGroup("g", [ValueError(), BaseExceptionGroup("h", [KeyboardInterrupt()])]), False),
    ],
    ids=repr,
)
def test_a_keyboard_interrupt_is_never_an_ordinary_failure(error: BaseException, ordinary: bool) -> None:
    assert is_ordinary(error) is ordinary
