"""What changed, for people to look at."""

from __future__ import annotations

import time

from dsh_plugin_fs._hunks import Hunk, hunks_between
from hypothesis import given
from hypothesis import strategies as st

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=30).map(lambda lines: "".join(f"{x}\n" for x in lines))


def numbered(*numbers: int) -> str:
    return "".join(f"{n}\n" for n in numbers)


def test_a_hunk_has_three_lines_around_the_change() -> None:
    before = numbered(*range(1, 21))
    hunks = hunks_between(before, before.replace("10\n", "ten\n"), 10_000)
    context, after = numbered(7, 8, 9), numbered(11, 12, 13)
    assert hunks.shown == (Hunk(7, f"{context}10\n{after}", f"{context}ten\n{after}"),)


def test_changes_far_apart_are_hunks_of_their_own() -> None:
    before = numbered(*range(1, 31))
    hunks = hunks_between(before, before.replace("5\n", "five\n", 1).replace("25\n", "x\n"), 10_000)
    assert [hunk.line for hunk in hunks.shown] == [2, 22]


def test_a_new_file_is_one_hunk_without_old_text() -> None:
    assert hunks_between(None, "a\nb\n", 100).shown == (Hunk(1, None, "a\nb\n"),)


def test_what_does_not_fit_is_counted() -> None:
    before = numbered(*range(1, 101))
    after = before.replace("10\n", "x\n", 1).replace("50\n", "y\n").replace("90\n", "z\n")
    hunks = hunks_between(before, after, 60)
    assert len(hunks.shown) == 1
    assert hunks.omitted == 2


def test_line_endings_are_no_change() -> None:
    assert hunks_between("a\r\nb\r\n", "a\nb\n", 100).shown == ()


def test_texts_that_are_hard_to_compare_take_little_time() -> None:
    start = time.thread_time()
    hunks_between("x\n" + "a\nb\n" * 20_000, "y\n" + "b\na\n" * 20_000, 10_000)
    assert time.thread_time() - start < 1.0


@given(before=LINES, after=LINES)
def test_the_hunks_turn_the_old_text_into_the_new(before: str, after: str) -> None:
    text, shift = before.splitlines(keepends=True), 0
    for hunk in hunks_between(before, after, 10_000).shown:
        old = (hunk.old_text or "").splitlines(keepends=True)
        new = hunk.new_text.splitlines(keepends=True)
        at = hunk.line - 1
        assert text[at : at + len(old)] == old, shift
        text[at : at + len(old)] = new
    assert "".join(text) == after
