"""Progress on one line."""

from __future__ import annotations

import math
from typing import Any

import pytest
from dsh_hookspecs import ToolProgress
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.cards import progress_line
from dsh_runtime.cards.width import columns_of


def test_a_known_total_gives_a_bar() -> None:
    """Share and message behind it."""
    assert progress_line(ToolProgress(3, 8, "fetching"), width=60) == "███████▌░░░░░░░░░░░░  38%  fetching"
    assert progress_line(ToolProgress(8, 8), width=60) == "████████████████████ 100%"
    assert progress_line(ToolProgress(3, 8), width=60, unicode=False) == "[#######-----------]  38%"


def test_an_unknown_total_gives_a_count() -> None:
    """And the last line that says something."""
    assert progress_line(ToolProgress(12_345, None, "one\ntwo\n\n"), width=60) == "12,345  two"
    assert progress_line(ToolProgress(0.5), width=60) == "0.5"


@pytest.mark.parametrize(("done", "total"), [(math.nan, 3), (1, 0), (1, -3), (1, math.inf), (math.inf, 3)])
def test_numbers_that_make_no_share_give_no_bar(done: float, total: float) -> None:
    """Nor an error."""
    assert "█" not in progress_line(ToolProgress(done, total), width=60)


def test_numbers_too_large_for_a_share_give_no_error() -> None:
    """Nor do those too long to print."""
    assert progress_line(ToolProgress(10**400, 1), width=60) == "…"
    assert progress_line(ToolProgress(10**5_000), width=60) == "…"


def test_more_than_all_is_all() -> None:
    """And less than nothing is nothing."""
    assert progress_line(ToolProgress(9, 3), width=60).endswith("100%")
    assert progress_line(ToolProgress(-9, 3), width=60).endswith("0%")


def test_a_message_steers_no_terminal() -> None:
    """It comes from the tool."""
    assert "\x1b" not in progress_line(ToolProgress(1, None, "a\x1b[2J"), width=60)


ANY_NUMBER = st.integers() | st.floats() | st.none()


@given(ANY_NUMBER, ANY_NUMBER, st.text(max_size=40) | st.just("漢" * 99), st.integers(0, 100), st.booleans())
def test_it_stays_on_its_line(done: Any, total: Any, message: str, width: int, unicode: bool) -> None:
    """Whatever the numbers and the width."""
    line = progress_line(ToolProgress(done, total, message), width=width, unicode=unicode)
    assert "\n" not in line
    assert columns_of(line) <= max(0, width - 1)
