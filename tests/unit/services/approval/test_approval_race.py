"""Two channels at once."""

# ruff: noqa: A006

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

from dsh_runtime import first_answer


def answering(outcome: str, after: float = 0) -> Callable[[], Any]:
    async def channel() -> str:
        await trio.sleep(after)
        return outcome

    return channel


def once(struck: trio.Event, outcome: str) -> Callable[[], Any]:
    async def channel() -> str:
        await struck.wait()
        return outcome

    return channel


def strike(struck: trio.Event) -> Callable[[], Any]:
    async def channel() -> str:
        await trio.testing.wait_all_tasks_blocked()
        struck.set()
        return "unavailable"

    return channel


@pytest.mark.parametrize("first", ["allowed-once", "rejected", "cancelled", "expired"])
async def test_the_first_answer_stands(autojump_clock: Any, first: str) -> None:
    """And nobody waits for the other one."""
    assert await first_answer(answering(first, 1), answering("allowed-once", 2)) == first
    assert trio.current_time() == 1


async def test_unavailable_is_no_answer(autojump_clock: Any) -> None:
    """The other channel is waited for."""
    assert await first_answer(answering("unavailable"), answering("allowed-once", 5)) == "allowed-once"


async def test_where_all_are_unavailable_so_is_the_outcome() -> None:
    assert await first_answer(answering("unavailable"), answering("unavailable")) == "unavailable"


async def test_the_loser_is_cancelled_and_has_come_to_rest(autojump_clock: Any) -> None:
    """It may take its prompt away before the answer counts."""
    rested: list[float] = []

    async def loser() -> Any:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            rested.append(trio.current_time())

    assert await first_answer(loser, answering("allowed-once", 1)) == "allowed-once"
    assert rested == [2]


@pytest.mark.parametrize("turn", [1, -1])
async def test_of_answers_in_the_same_breath_the_stricter_stands(turn: int) -> None:
    """Whichever comes first."""
    for _ in range(20):
        struck = trio.Event()
        channels = [once(struck, "allowed-once"), once(struck, "rejected"), strike(struck)][::turn]
        assert await first_answer(*channels) == "rejected"


async def test_a_loser_that_answers_because_it_is_stopped_allows_nothing(autojump_clock: Any) -> None:
    """A yes does not undo the no that came first."""

    async def sore() -> Any:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return "allowed-once"

    assert await first_answer(sore, answering("rejected", 1)) == "rejected"


async def test_a_channel_that_fails_fails_the_question(autojump_clock: Any) -> None:
    """The very error comes out, and the other channel is asked no longer."""

    async def broken() -> Any:
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        await first_answer(answering("allowed-once", 5), broken)
    assert trio.current_time() == 0


async def test_a_cancelled_race_is_cancelled(autojump_clock: Any) -> None:
    with trio.move_on_after(1) as scope:
        await first_answer(answering("rejected", 5), answering("rejected", 6))
    assert scope.cancelled_caught


async def test_two_prompting_channels_are_asked_together(desk: Any) -> None:
    """Each with the ones behind it."""
    shown: list[str] = []

    def channel(name: str, prompt: Callable[[], Any]) -> Any:
        async def show() -> Any:
            shown.append(name)
            return await prompt()

        return lambda next: first_answer(next, show)

    await desk.channel("terminal", channel("terminal", trio.sleep_forever))
    await desk.channel("chat", channel("chat", answering("rejected")))
    assert await desk.ask() == "rejected"
    assert sorted(shown) == ["chat", "terminal"]
    assert desk.decided == [("rejected", "chat")]
