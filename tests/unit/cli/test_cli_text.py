"""Texts are safe to print on a terminal, and stand in columns."""

from __future__ import annotations

import pytest

from dsh_runtime.cli.text import columns, counted, first_line, one_line, shortened, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Grüße, 世界, 👩‍🚀", "Grüße, 世界, 👩‍🚀"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("over\rwritten\x07", "over\\rwritten\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("rm\u200b -rf\ufeff", "rm\\u200b -rf\\ufeff"),
        ("left\u200eright\u200f\u061c", "left\\u200eright\\u200f\\u061c"),
        ("so\u00adft, \u3164blank", "so\\xadft, \\u3164blank"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
        ("z" + "\u0301" * 6, "z" + "\u0301" * 4 + "\\u0301" * 2),
    ],
)
def test_nothing_in_a_text_can_steer_a_terminal_or_hide(text: str, shown: str) -> None:
    """Escape sequences, turned directions and what has no width are written out."""
    assert visible(text) == shown


def test_a_text_is_told_on_one_line() -> None:
    """White space of any kind is one blank."""
    assert one_line("  a\n\n b\r\nc ") == "a b c"
    assert first_line("\n\n  Greet someone.\nMore.") == "Greet someone."
    assert first_line(" \n") == ""


def test_columns_stand_below_one_another() -> None:
    """The last one is not padded."""
    assert columns([("A", "B"), ("long", "x"), ("s", "yy")]) == ["A     B", "long  x", "s     yy"]


def test_a_text_is_cut_and_a_number_has_its_noun() -> None:
    """Small words for people."""
    assert shortened("abcdef", 4) == "abc…"
    assert shortened("abcd", 4) == "abcd"
    assert [counted(n, "tool") for n in (0, 1, 2)] == ["0 tools", "1 tool", "2 tools"]
