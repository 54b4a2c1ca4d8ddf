"""Globs: what they match, against two oracles, and what a hostile text costs."""

from __future__ import annotations

import fnmatch
from functools import cache

import pytest
from dsh_plugin_permission_gate._glob import MAX_GLOB, GlobError, compile_glob
from dsh_plugin_permission_gate._globs import globs
from hypothesis import assume, example, given
from hypothesis import strategies as st

ALPHABET = "ab/.A[]!-\\\n"
TEXTS = st.text(ALPHABET, max_size=12)
GLOBS = st.lists(
    st.sampled_from(
        ["*", "**/", "/**/", "**", "?", "a", "b", "/", ".", "A", "[ab]", "[!a]", "[a-b]", "[]]", "[[]", "\\"]
    ),
    max_size=8,
).map("".join)


def oracle(glob: str, text: str) -> bool:
    """The definition, read aloud: every star tries every length."""

    @cache
    def fits(g: int, t: int) -> bool:
        if g == len(glob):
            return t == len(text)
        stars = len(glob[g:]) - len(glob[g:].lstrip("*"))
        behind = g + stars
        if stars > 1 and glob[behind : behind + 1] == "/" and glob[:g][-1:] in ("", "/"):
            starts = [t, *(at + 1 for at in range(t, len(text)) if text[at] == "/")]
            return any(fits(behind + 1, at) for at in starts)
        if stars:
            return any(fits(behind, at) for at in range(t, len(text) + 1))
        if t == len(text):
            return False
        if glob[g] == "[":
            end = glob.index("]", g + 2 + glob[g + 1 :].startswith("!"))
            return fnmatch.fnmatchcase(text[t], glob[g : end + 1]) and fits(end + 1, t + 1)
        return glob[g] in ("?", text[t]) and fits(g + 1, t + 1)

    return fits(0, 0)


@given(glob=GLOBS, text=TEXTS)
@example(glob="a/**/b", text="a/b")
@example(glob="*/**/a", text="b//a")
@example(glob="**/a*", text="b/a")
def test_a_glob_matches_what_its_definition_says(glob: str, text: str) -> None:
    assert compile_glob(glob).matches(text) == oracle(glob, text)


@given(glob=GLOBS, text=TEXTS)
def test_without_directory_stars_a_glob_is_that_of_fnmatch(glob: str, text: str) -> None:
    assume("**/" not in glob)
    assert compile_glob(glob).matches(text) == fnmatch.fnmatchcase(text, glob)


@given(sources=st.lists(GLOBS, max_size=4), text=TEXTS)
def test_a_row_of_globs_matches_where_one_of_them_does(sources: list[str], text: str) -> None:
    assert globs(sources).match(text) == any(compile_glob(source).matches(text) for source in sources)


@given(text=st.text())
def test_a_star_matches_every_text(text: str) -> None:
    assert compile_glob("*").matches(text)


@given(text=st.text(st.characters(exclude_characters="*?[")))
def test_a_text_without_wild_characters_matches_itself_alone(text: str) -> None:
    glob = compile_glob(text)
    assert glob.matches(text)
    assert not glob.matches(f"{text}x")
    assert not glob.matches(f"x{text}")


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("fs_*", "fs_write", True),
        ("fs_*", "FS_write", False),
        ("fs_*", "xfs_write", False),
        ("*.env", "deep/down/.env", True),
        ("**/.env", ".env", True),
        ("**/.env", "deep/down/.env", True),
        ("**/.env", "prod.env", False),
        ("secrets/**/key", "secrets/key", True),
        ("secrets/**/key", "secrets/a/b/key", True),
        ("secrets/**/key", "secrets/monkey", False),
        ("src/*", "src/deep/down", True),
        ("src/*", "src", False),
        ("[[]x[*]", "[x*", True),
        ("a?c", "a\nc", True),
        ("rm *", "rm -rf /", True),
    ],
)
def test_examples(glob: str, text: str, matches: bool) -> None:
    assert compile_glob(glob).matches(text) is matches


@pytest.mark.parametrize("glob", ["[", "a[b", "[]", "[!]", "[b-a]", "x" * (MAX_GLOB + 1)])
def test_what_is_no_glob_is_refused_with_the_glob_in_the_message(glob: str) -> None:
    with pytest.raises(GlobError, match="glob") as caught:
        compile_glob(glob)
    assert repr(glob[:40])[1:-1] in str(caught.value)


@pytest.mark.parametrize("glob", ["*a" * 100 + "*b", "**/a/" * 100 + "b", "*[ab]" * 100 + "c", "?*" * 100 + "c"])
@pytest.mark.parametrize("unit", ["a", "a/", "/"])
def test_a_hostile_text_costs_no_more_than_its_length_times_the_globs(glob: str, unit: str) -> None:
    # Whoever backtracks over a hundred stars in this text does not come back.
    assert not compile_glob(glob).matches(unit * 20_000)
