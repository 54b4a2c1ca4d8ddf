"""Replacing one passage of a text."""

from __future__ import annotations

import pytest
from dsh_plugin_fs._edit import replace_once
from dsh_plugin_fs._errors import FsError
from hypothesis import given
from hypothesis import strategies as st

ENDINGS = st.lists(st.tuples(st.text("ab", max_size=3), st.sampled_from(["\n", "\r\n"])), max_size=8)


def refused(text: str, old: str, new: str) -> FsError:
    with pytest.raises(FsError) as caught:
        replace_once(text, old, new, "f")
    return caught.value


@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("a\nb\n", "a\nb", "c", "c\n"),
        ("a\r\nb\r\n", "a\nb", "c\nd", "c\r\nd\r\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\nb\n", "a\r\nb", "c\r\nd", "c\nd\n"),
        ("a\r\nb\nc\n", "b\nc", "x\ny", "a\r\nx\ny\n"),
        ("a\r\nb\nc\r\n", "a\nb", "x\ny", "x\r\ny\nc\r\n"),
        ("no end", "end", "tail", "no tail"),
        ("one", "one", "a\nb", "a\nb"),
        ("a\r\n", "a\n", "", ""),
        ("a\r\nb", "\nb", "\nc", "a\r\nc"),
    ],
)
def test_a_passage_is_found_whatever_its_line_endings_and_keeps_them(
    text: str, old: str, new: str, result: str
) -> None:
    assert replace_once(text, old, new, "f") == result


def test_text_that_does_not_occur_is_refused() -> None:
    assert refused("abc", "x", "y").code == "FS_NO_MATCH"


def test_text_that_occurs_twice_is_refused_with_the_lines() -> None:
    error = refused("x\na\nx\n", "x", "y")
    assert error.code == "FS_NOT_UNIQUE"
    assert "2 times in 'f' (lines 1, 3)" in error.message


def test_places_that_overlap_count_each() -> None:
    assert refused("aaa", "aa", "b").code == "FS_NOT_UNIQUE"


def test_counting_places_is_bounded() -> None:
    assert "100 or more times" in refused("a" * 1_000_000, "a" * 500_000, "b").message


@pytest.mark.parametrize(("old", "new"), [("", "x"), ("a", "a"), ("a\n", "a\r\n")])
def test_an_edit_that_changes_nothing_is_refused(old: str, new: str) -> None:
    assert refused("a\n", old, new).code == "FS_BAD_EDIT"


@given(before=ENDINGS, after=ENDINGS, new=st.text("xy\n", min_size=1, max_size=6))
def test_everything_around_the_passage_stays_as_it_is(
    before: list[tuple[str, str]], after: list[tuple[str, str]], new: str
) -> None:
    head, tail = ("".join(line + end for line, end in part) for part in (before, after))
    result = replace_once(f"{head}UNIQUE{tail}", "UNIQUE", new, "f")
    assert result.startswith(head)
    assert result.endswith(tail)
    assert result[len(head) : len(result) - len(tail)].replace("\r\n", "\n") == new
