"""Splitting the wire into lines."""

from __future__ import annotations

from dsh_plugin_mcp_server._lines import LineSplitter
from hypothesis import given
from hypothesis import strategies as st


def test_lines_are_put_together_from_chunks() -> None:
    """A line may come in parts, and several at once."""
    splitter = LineSplitter(100)
    assert splitter.feed(b"on") == []
    assert splitter.feed(b"e\ntwo\nthr") == [b"one", b"two"]
    assert splitter.feed(b"ee\n") == [b"three"]


def test_blank_lines_mean_nothing() -> None:
    """Neither an empty line nor one of white space is a message."""
    assert LineSplitter(100).feed(b"\n\r\n  \na\n") == [b"a"]


def test_the_end_completes_the_last_line() -> None:
    """The last message needs no newline."""
    splitter = LineSplitter(100)
    splitter.feed(b"last")
    assert splitter.finish() == [b"last"]
    assert splitter.finish() == []


def test_a_line_that_is_too_long_is_dropped_as_it_arrives() -> None:
    """It is reported once, at its end, and what follows is intact; it is never held as a whole."""
    splitter = LineSplitter(10)
    for _ in range(1000):
        assert splitter.feed(b"x" * 100) == []
        assert len(splitter._rest) == 0
    assert splitter.feed(b"x\nnext\n") == [None, b"next"]


def test_a_line_of_the_full_length_passes() -> None:
    """The limit itself is allowed, one byte more is not."""
    assert LineSplitter(4).feed(b"1234\n12345\n1234\n") == [b"1234", None, b"1234"]


@given(st.binary(max_size=200), st.lists(st.integers(1, 50), max_size=20), st.integers(1, 30))
def test_how_the_bytes_are_cut_up_makes_no_difference(data: bytes, cuts: list[int], most: int) -> None:
    """The same bytes give the same lines, whatever chunks they come in."""
    at_once = LineSplitter(most)
    expected = at_once.feed(data) + at_once.finish()
    in_parts, got, start = LineSplitter(most), [], 0
    for cut in cuts:
        got += in_parts.feed(data[start : start + cut])
        start += cut
    got += in_parts.feed(data[start:]) + in_parts.finish()
    assert got == expected
