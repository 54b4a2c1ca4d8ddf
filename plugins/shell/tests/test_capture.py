"""Keeping the beginning and the end of an output."""

from __future__ import annotations

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


def test_news_are_the_end_of_what_came_since_the_last_time() -> None:
    news = News(8)
    assert news.take() == ""
    news.add(b"0123")
    news.add(b"456789")
    assert news.take() == "23456789"
    news.add("é".encode()[:1])
    assert news.take() == ""
    news.add("é".encode()[1:])
    assert news.take() == "é"
