"""Cutting, as pure functions."""

from __future__ import annotations

from dsh_plugin_spill import cut, shares
from hypothesis import given
from hypothesis import strategies as st

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def note(left: int) -> str:
    return f"<{left}>"


@given(TEXTS, st.integers(10, 300))
def test_a_cut_text_is_never_larger_than_it_may_be(text: str, most: int) -> None:
    assert len(cut(text, most, note).encode()) <= most


@given(TEXTS.filter(lambda text: "<" not in text and ">" not in text), st.integers(10, 300))
def test_what_is_left_are_a_beginning_and_an_end_of_the_text(text: str, most: int) -> None:
    head, _, rest = cut(text, most, note).partition("<")
    left, _, tail = rest.partition(">")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + int(left) + len(tail.encode()) == len(text.encode())


def test_both_ends_stop_at_whole_characters() -> None:
    assert cut("ééééé" * 10, 14, note) == "ééé<92>é"


@given(st.lists(st.integers(0, 500), max_size=10), st.integers(0, 1000))
def test_shares_stay_within_the_budget_and_give_nobody_more_than_is_needed(sizes: list[int], budget: int) -> None:
    granted = shares(sizes, budget)
    assert sum(granted) <= budget
    assert all(share <= size for share, size in zip(granted, sizes, strict=True))


@given(st.lists(st.integers(0, 500), max_size=10))
def test_where_the_budget_is_enough_everything_stays_whole(sizes: list[int]) -> None:
    assert shares(sizes, sum(sizes)) == sizes


def test_what_is_small_stays_whole_and_the_rest_is_shared_evenly() -> None:
    assert shares([1000, 10, 1000], 510) == [250, 10, 250]
