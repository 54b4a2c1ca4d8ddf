"""A person at a terminal, and a host behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

Open = Callable[..., AbstractAsyncContextManager[Any]]


async def test_a_yes_lets_the_call_run(open_screen: Open) -> None:
    """Nothing else is asked."""
    async with open_screen() as screen:
        await screen.says()
        await screen.tells(call="c1", arguments={"text": "hello"})
        await screen.sees_question()
        screen.type("y")
        assert await screen.says() == {"ran": "c1"}
        assert await screen.says() == {"call": "c1", "code": None}
        await screen.sees("show [a]ll: yes")
        for part in ("tool       echo", "reason     sure?", '"text": "hello"'):
            assert part in screen.shown


@pytest.mark.parametrize("keys", ["n", "\r", "q", "\x1b[A", "\x04"], ids=ascii)
async def test_anything_else_does_not(open_screen: Open, keys: str) -> None:
    """Enter, an arrow, the end of input."""
    async with open_screen() as screen:
        await screen.says()
        await screen.tells(call="c1")
        await screen.sees_question()
        screen.type(keys)
        assert await screen.says() == {"call": "c1", "code": "APPROVAL_REJECTED"}
        await screen.sees("show [a]ll: no")


async def test_all_shows_everything_and_asks_again(open_screen: Open) -> None:
    """What was left out at first, too."""
    middle = "x" * 3000 + "MIDDLE" + "x" * 3000
    async with open_screen() as screen:
        await screen.says()
        await screen.tells(call="c1", arguments={"text": middle})
        await screen.sees_question()
        assert "MIDDLE" not in screen.shown
        assert "(this is not all)" in screen.shown
        screen.type("a")
        await screen.sees_question(2)
        assert "MIDDLE" in screen.shown
        screen.type("y")
        assert await screen.says() == {"ran": "c1"}


async def test_what_was_typed_before_answers_nothing(open_screen: Open) -> None:
    """A stray key before the question is no answer to it."""
    async with open_screen() as screen:
        await screen.says()
        screen.type("y\ry")
        await screen.tells(call="c1")
        await screen.sees_question()
        screen.type("n")
        assert await screen.says() == {"call": "c1", "code": "APPROVAL_REJECTED"}


async def test_questions_stand_there_one_at_a_time(open_screen: Open) -> None:
    """In the order in which they came; an answer is for the one that stands there."""
    async with open_screen() as screen:
        await screen.says()
        await screen.tells(call="c1", arguments={"text": "first"})
        await screen.sees_question()
        await screen.tells(call="c2", arguments={"text": "second"})
        await screen.tells(call="c3", arguments={"text": "third"})
        for number, (text, key, code) in enumerate(
            [("first", "y", None), ("second", "n", "APPROVAL_REJECTED"), ("third", "y", None)], start=1
        ):
            await screen.sees_question(number)
            assert screen.shown.count('"text"') == number
            assert f'"{text}"' in screen.shown
            screen.type(key)
            if code is None:
                assert await screen.says() == {"ran": f"c{number}"}
            assert await screen.says() == {"call": f"c{number}", "code": code}


async def test_an_aborted_call_is_asked_about_no_longer(open_screen: Open) -> None:
    """The line says so, and the terminal is as it was."""
    async with open_screen() as screen:
        await screen.says()
        modes = screen.modes()
        await screen.tells(call="c1")
        await screen.sees_question()
        assert screen.modes() != modes
        await screen.tells(abort="c1")
        assert await screen.says() == {"call": "c1", "code": "ABORTED_BEFORE_DISPATCH"}
        await screen.sees("- the call was aborted")
        assert screen.modes() == modes


async def test_an_aborted_call_in_the_queue_is_never_shown(open_screen: Open) -> None:
    async with open_screen() as screen:
        await screen.says()
        await screen.tells(call="c1", arguments={"text": "first"})
        await screen.sees_question()
        await screen.tells(call="c2", arguments={"text": "second"})
        await screen.tells(abort="c2")
        assert await screen.says() == {"call": "c2", "code": "ABORTED_BEFORE_DISPATCH"}
        screen.type("n")
        assert await screen.says() == {"call": "c1", "code": "APPROVAL_REJECTED"}
        assert "second" not in screen.shown


async def test_a_question_that_nobody_answers_expires(open_screen: Open) -> None:
    """The line says so, and the terminal is as it was."""
    async with open_screen(approval_timeout=0.2) as screen:
        await screen.says()
        modes = screen.modes()
        await screen.tells(call="c1")
        assert await screen.says() == {"call": "c1", "code": "APPROVAL_EXPIRED"}
        await screen.sees("- no answer in time")
        assert screen.modes() == modes


@pytest.mark.parametrize(("answer", "code"), [("allowed-once", None), ("rejected", "APPROVAL_REJECTED")])
async def test_another_channel_may_answer_first(open_screen: Open, answer: str, code: str | None) -> None:
    """The line says so, and the terminal is as it was."""
    async with open_screen(other=True) as screen:
        await screen.says()
        modes = screen.modes()
        await screen.tells(call="c1")
        await screen.sees_question()
        await screen.tells(answer=answer)
        if code is None:
            assert await screen.says() == {"ran": "c1"}
        assert await screen.says() == {"call": "c1", "code": code}
        await screen.sees("- answered elsewhere")
        assert screen.modes() == modes


async def test_the_person_may_answer_before_another_channel(open_screen: Open) -> None:
    async with open_screen(other=True) as screen:
        await screen.says()
        await screen.tells(call="c1")
        await screen.sees_question()
        screen.type("y")
        assert await screen.says() == {"ran": "c1"}


async def test_without_a_terminal_the_other_channel_is_asked(open_screen: Open) -> None:
    async with open_screen(controlling=False, other=True) as screen:
        await screen.says()
        await screen.tells(call="c1")
        await screen.tells(answer="allowed-once")
        assert await screen.says() == {"ran": "c1"}


async def test_without_a_terminal_and_without_another_channel_nobody_is_there(open_screen: Open) -> None:
    """The call is denied at once."""
    async with open_screen(controlling=False) as screen:
        await screen.says()
        await screen.tells(call="c1")
        assert await screen.says() == {"call": "c1", "code": "APPROVAL_UNAVAILABLE"}


async def test_in_the_background_of_its_terminal_nobody_is_asked(open_screen: Open) -> None:
    """A process that reads there would be stopped."""
    async with open_screen(background=True) as screen:
        await screen.says()
        await screen.tells(call="c1")
        assert await screen.says() == {"call": "c1", "code": "APPROVAL_UNAVAILABLE"}
        await screen.tells(end=True)


async def test_an_interrupt_is_a_no_and_an_interrupt(open_screen: Open) -> None:
    """The process gets the signal that Ctrl-C sends otherwise."""
    async with open_screen() as screen:
        await screen.says()
        modes = screen.modes()
        await screen.tells(call="c1")
        await screen.sees_question()
        screen.type("\x03")
        said = [await screen.says(), await screen.says()]
        assert {"call": "c1", "code": "APPROVAL_REJECTED"} in said
        assert {"interrupted": True} in said
        await screen.sees("no (interrupted)")
        assert screen.modes() == modes


async def test_secrets_are_not_shown(open_screen: Open) -> None:
    """Not even when everything is."""
    async with open_screen(redact=True) as screen:
        await screen.says()
        await screen.tells(call="c1", arguments={"password": "hunter2"})
        await screen.sees_question()
        screen.type("a")
        await screen.sees_question(2)
        assert "hunter2" not in screen.shown
        assert "****" in screen.shown


async def test_arguments_cannot_steer_the_terminal(open_screen: Open) -> None:
    """Nor rewrite the question."""
    async with open_screen() as screen:
        await screen.says()
        await screen.tells(call="c1", arguments={"text": "\x1b[2J\x1b[Hharmless\r\u202e"})
        await screen.sees_question()
        assert "\x1b" not in screen.shown
        assert "\u202e" not in screen.shown
        assert r"\u001b[2J" in screen.shown


@pytest.mark.parametrize(("terminal", "coloured"), [("dumb", False), ("xterm", True)])
async def test_the_calls_own_card_is_shown(open_screen: Open, terminal: str, coloured: bool) -> None:
    """In colours where there are any; what the arguments hold steers nothing."""
    async with open_screen(terminal=terminal) as screen:
        await screen.says()
        await screen.tells(call="c1", arguments={"new": "fresh\x1b[2J"})
        await screen.sees_question()
        text = re.sub(r"\x1b\[[0-9;]*m", "", screen.shown)
        for part in ("Edit notes", "notes.txt", "- old", "+ fresh"):
            assert part in text
        assert "\x1b" not in text
        assert ("\x1b[" in screen.shown) is coloured


async def test_the_key_of_one_question_does_not_answer_the_next(open_screen: Open) -> None:
    """Keys that came with the answer are forgotten."""
    async with open_screen() as screen:
        await screen.says()
        await screen.tells(call="c1")
        await screen.sees_question()
        await screen.tells(call="c2")
        screen.type("nyyyy")
        assert await screen.says() == {"call": "c1", "code": "APPROVAL_REJECTED"}
        await screen.sees_question(2)
        screen.type("n")
        assert await screen.says() == {"call": "c2", "code": "APPROVAL_REJECTED"}


async def test_nothing_is_left_behind(open_screen: Open) -> None:
    """No thread and no descriptor, whether a question was answered or not."""
    async with open_screen() as screen:
        ready = await screen.says()
        await screen.tells(call="c1")
        await screen.sees_question()
        screen.type("y")
        await screen.says()
        await screen.says()
        await screen.tells(call="c2")
        await screen.sees_question(2)
        await screen.tells(abort="c2")
        await screen.says()
        await screen.tells(end=True)
        left = await screen.says()
        assert left["threads"] == 1
        assert len(left["fds"]) <= len(ready["ready"]) + 1  # the descriptor through which stdin is read


async def test_a_terminal_that_goes_away_has_no_answer(open_screen: Open) -> None:
    """The other channels may still have one."""
    async with open_screen(other=True) as screen:
        await screen.says()
        await screen.tells(call="c1")
        await screen.sees_question()
        screen.hang_up()
        await screen.tells(answer="allowed-once")
        assert await screen.says() == {"ran": "c1"}
