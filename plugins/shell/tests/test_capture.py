"""Keeping the beginning and the end of an output."""

from __future__ import annotations

import re

import pytest
from dsh_plugin_shell._capture import Capture, News, Output


def captured(data: bytes, keep: int, chunk: int = 7) -> Output:
    capture = Capture(keep)
    for start in range(0, len(data), chunk):
        capture.add(data[start : start + chunk])
    return capture.output()


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_what_fits_is_kept_whole(chunk: int) -> None:
    assert captured(b"0123456789", 10, chunk) == Output("0123456789", 10, False, False)
    assert captured(b"", 10, chunk) == Output("", 0, False, False)


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_of_more_the_beginning_and_the_end_are_kept(chunk: int) -> None:
    output = captured(b"0123456789" * 3, 10, chunk)
    assert output == Output("01234\n… 20 bytes left out …\n56789", 30, True, False)


def test_room_is_bounded_whatever_comes() -> None:
    capture = Capture(1_000)
    for _ in range(1_000):
        capture.add(b"x" * 10_000)
        assert len(capture._head) + len(capture._tail) < 80_000
    assert capture.output().size == 10_000_000


@pytest.mark.parametrize("keep", range(1, 24))
def test_a_character_that_the_cut_tears_is_no_invalid_one(keep: int) -> None:
    output = captured("aé漢😀".encode() * 20, keep)
    assert not output.invalid_utf8
    assert "\ufffd" not in output.text
    assert output.truncated


def test_bytes_that_are_no_utf8_are_replaced_and_told() -> None:
    assert captured(b"a\xff\xc3", 100) == Output("a\ufffd\ufffd", 3, False, True)
    assert captured(b"\xff" + b"a" * 100, 10).invalid_utf8
    assert captured(b"a" * 100 + b"\xff", 10).invalid_utf8
    assert not captured(b"a" * 50 + b"\xff" + b"a" * 50, 10).invalid_utf8  # it is not shown


def test_a_replacement_character_of_the_command_is_no_invalid_one() -> None:
    assert captured("\ufffd".encode(), 100) == Output("\ufffd", 3, False, False)


def test_a_line_that_the_cut_tears_is_left_out() -> None:
    """What is left of it may be half a secret."""
    lines = b"".join(b"line %03d password=hunter2\n" % number for number in range(100))
    for keep in range(200, 260):
        head, note, tail = re.split(r"\n… (.*) bytes left out …\n", captured(lines, keep).text)
        assert all(line.endswith("=hunter2") for line in head.splitlines())
        assert all(line.startswith("line ") for line in tail.splitlines())
        assert len(head) + len(tail) + int(note.replace(",", "")) == len(lines)


def test_of_a_long_line_that_the_cut_tears_the_words_next_to_the_cut_are_left_out() -> None:
    token = b"ghp_" + b"aB3" * 13
    for shift in range(len(token) + 20):
        data = b"x " * 100 + b"password: " + token + b" " + b"y " * 2_000 + b" password: " + token + b" " + b"z" * shift
        text = captured(data, 2 * (200 + shift)).text
        assert "aB3aB3" not in text.replace(token.decode(), "")
        head, tail = text.split("left out …\n")
        assert token.decode() not in tail or "password: " in tail
        assert head.startswith("x x ")


def test_news_are_the_last_lines_that_came_since_the_last_time() -> None:
    news = News(12)
    assert news.take() == ""
    news.add(b"0123\n4")
    assert news.take() == "0123\n"
    news.add(b"5\n" + "é".encode()[:1])
    assert news.take() == "45\n"
    news.add("é".encode()[1:] + b"\r")
    assert news.take() == "é\r"
    news.add(b"first 0123\nlast\n")
    assert news.take() == "last\n"


def test_of_a_line_that_is_too_long_nothing_is_news() -> None:
    """Neither its beginning, which goes out with nothing behind it, nor its end, which has lost what it was about."""
    news = News(12)
    for _ in range(10):
        news.add(b"password=")
        assert news.take() == ""
    news.add(b"hunter2\nnext\n")
    assert news.take() == "next\n"
