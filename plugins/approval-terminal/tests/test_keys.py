"""What typed keys mean."""

from __future__ import annotations

import pytest
from dsh_plugin_approval_terminal._keys import read_key


@pytest.mark.parametrize("typed", [b"y", b"Y", b"yes", b"YES", b"y\n", b"yes\r\n", b" y"])
def test_yes_is_yes(typed: bytes) -> None:
    """With the Enter of a terminal that sends whole lines, too."""
    assert read_key(typed) == "yes"


@pytest.mark.parametrize("typed", [b"a", b"A", b"all\n"])
def test_all_is_all(typed: bytes) -> None:
    assert read_key(typed) == "all"


@pytest.mark.parametrize(
    "typed", [b"n", b"\n", b"\r", b"", b" ", b"\x1b", b"\x1b[A", b"yy", b"yn", b"yesterday", b"\x04", b"\xff", b"q"]
)
def test_anything_unclear_is_no(typed: bytes) -> None:
    """Enter, the end of input, a word that begins with y, a key of several bytes."""
    assert read_key(typed) == "no"


@pytest.mark.parametrize("typed", [b"\x03", b"y\x03", b"\x03y"])
def test_an_interrupt_is_one_whatever_else_was_typed(typed: bytes) -> None:
    assert read_key(typed) == "interrupt"
