"""Running something for so many seconds, shielded or not, in a scope that is entered late or first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from dsh_runtime.tools import scope


@pytest.fixture(params=["late", "first"])
def within(request: pytest.FixtureRequest) -> Any:
    """Every test holds for both ways."""
    return scope.within_late if request.param == "late" else scope.within_scoped


async def sleep_and_note(seconds: float, noted: list[str]) -> None:
    """Wait, cancelled or not, and say that it was done."""
    await trio.sleep(seconds)
    noted.append("done")


async def test_what_ends_in_time_is_not_cancelled(within: Any, autojump_clock: Any) -> None:
    noted: list[str] = []
    entered = await within(sleep_and_note(4, noted), 5)
    assert noted == ["done"]
    assert not entered.cancel_called


async def test_what_takes_longer_is_cancelled(within: Any, autojump_clock: Any) -> None:
    noted: list[str] = []
    entered = await within(sleep_and_note(6, noted), 5, shield=True)
    assert noted == []
    assert entered.cancelled_caught
    assert trio.current_time() == pytest.approx(5, abs=0.1)


async def test_what_does_not_wait_enters_no_scope() -> None:
    async def at_once() -> None: ...

    assert await scope.within_late(at_once(), 5) is None


async def test_an_error_comes_out(within: Any) -> None:
    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await within(fail(), 5)


@pytest.mark.parametrize(
    "wait",
    [
        trio.lowlevel.checkpoint,
        trio.lowlevel.checkpoint_if_cancelled,
        lambda: trio.sleep(1),  # noqa: ASYNC105 - awaited by the test
        lambda: trio.Semaphore(1).acquire(),
        lambda: trio.to_thread.run_sync(int),
    ],
)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_shield_keeps_out_a_cancellation_from_outside(within: Any, wait: Callable[[], Any], when: str) -> None:
    """Whatever is waited for first; behind the shield the cancellation goes on its way."""
    noted: list[str] = []

    async def work(outer: trio.CancelScope) -> None:
        await wait()
        outer.cancel()
        await trio.lowlevel.checkpoint()
        noted.append("done")

    with trio.CancelScope() as outer:
        if when == "before":
            outer.cancel()
        await within(work(outer), 60, shield=True)
        await trio.lowlevel.checkpoint()
        noted.append("not reached")
    assert noted == ["done"]
    assert outer.cancelled_caught


async def test_without_a_shield_a_cancellation_comes_through(within: Any) -> None:
    with trio.CancelScope() as outer:
        outer.cancel()
        await within(trio.sleep_forever(), 60)  # noqa: ASYNC105 - awaited in there
    assert outer.cancelled_caught


async def test_a_scope_that_is_left_open_is_told(within: Any) -> None:
    """It is a bug of whoever opened it, and comes out here and not somewhere behind."""

    async def leave_open() -> None:
        trio.CancelScope().__enter__()

    with pytest.raises(RuntimeError, match="Cancel scope stack corrupted"):
        await within(leave_open(), 60)
