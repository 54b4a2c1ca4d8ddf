"""The forms of a value: whatever some system takes for a file's name is among them."""

from __future__ import annotations

import pytest
from dsh_hookspecs import JsonValue
from dsh_plugin_permission_gate._forms import fold, path_forms, posix_normal, text_forms
from dsh_plugin_permission_gate._globs import Cover, path_globs, text_globs
from hypothesis import given
from hypothesis import strategies as st

NAMES = st.text("aB./\\: \0", max_size=12)


@pytest.mark.parametrize(
    ("name", "normal"),
    [
        ("a/./b//c/", "a/b/c"),
        ("a/../b", "b"),
        ("../a", "../a"),
        ("/../a", "/a"),
        ("//a", "/a"),
        ("///a", "/a"),
        ("a/..", "."),
        ("/", "/"),
        ("", ""),
    ],
)
def test_the_normal_form_of_a_name(name: str, normal: str) -> None:
    assert posix_normal(name) == normal


@given(NAMES)
def test_the_normal_form_is_its_own_normal_form(name: str) -> None:
    assert posix_normal(posix_normal(name)) == posix_normal(name)


@given(st.text())
def test_a_name_is_among_its_own_exact_forms(name: str) -> None:
    assert name in path_forms(name)[0]


@given(NAMES)
def test_the_normal_form_is_among_the_exact_forms(name: str) -> None:
    assert posix_normal(name) in path_forms(name)[0]


@given(NAMES)
def test_the_normal_form_with_backslashes_as_separators_is_among_the_exact_forms(name: str) -> None:
    assert posix_normal(name.replace("\\", "/")) in path_forms(name)[0]


@given(st.text(st.characters(exclude_characters="\0")), st.text())
def test_what_stands_before_a_nul_has_all_its_forms(name: str, rest: str) -> None:
    for forms, before in zip(path_forms(f"{name}\0{rest}"), path_forms(name), strict=True):
        assert set(before) <= set(forms)


@given(NAMES)
def test_a_name_that_is_taken_the_short_way_has_no_other_form(name: str) -> None:
    exact, _ = path_forms(name)
    assert len(exact) > 1 or exact[0] == name == posix_normal(name)


@given(st.text())
def test_folding_twice_is_folding_once(name: str) -> None:
    assert fold(fold(name)) == fold(name)


@pytest.mark.parametrize(
    "name",
    [
        ".env",
        "./.env",
        "a/../.env",
        "config//.env",
        "config/./.env",
        "/srv/.env",
        ".env/",
        ".env/.",
        " .env",
        ".env ",
        ".env\n",
        ".env.",
        ".env. .",
        ".env\0.txt",
        ".ENV",
        ".Env",
        "C:\\work\\.env",
        "C:.env",
        "\\\\?\\C:\\work\\.env",
        "config\\.env",
        "x\\..\\.env",
        ".env::$DATA",
        "config/.. /.env",
        "\uff0e\uff45\uff4e\uff56",
        "config\uff0f.env",
        ".\u200benv",
        ".e\u00adnv",
        "\n.env\n\0.txt",
    ],
)
def test_tricks_with_a_files_name_do_not_get_past_a_path_glob(name: str) -> None:
    assert path_globs(["**/.env"]).cover(name) > Cover.NONE


@pytest.mark.parametrize(
    "name", ["src/../.env", "src/./../.env", "src\\..\\.env", "src/a\0/../../.env", "SRC/x", "src"]
)
def test_a_name_that_only_looks_right_is_not_covered_as_a_whole(name: str) -> None:
    assert path_globs(["src/*"]).cover(name) < Cover.WHOLE


@pytest.mark.parametrize(
    "name", ["src/a.py", "src/README.md", "src/deep/.config/x", "src//a.py", "src/ä.txt", "src/a b.c"]
)
def test_an_honest_name_is_covered_as_a_whole(name: str) -> None:
    assert path_globs(["src/*"]).cover(name) is Cover.WHOLE


def test_a_glob_with_upper_case_still_fits_its_own_name() -> None:
    assert path_globs(["README.md"]).cover("README.md") is Cover.WHOLE
    assert path_globs(["README.md"]).cover("readme.md") is Cover.PART


@pytest.mark.parametrize(
    ("value", "forms"),
    [
        ("text", {"text"}),
        ("./x", {"./x"}),
        (True, {"true"}),
        (None, {"null"}),
        (1, {"1"}),
        (1.0, {"1.0", "1"}),
        (0.5, {"0.5"}),
        (["ä", 1], {'["ä",1]'}),
        ({"a": [1]}, {'{"a":[1]}'}),
        (({"a": 1},), {'[{"a":1}]'}),
    ],
)
def test_the_text_of_a_value_is_itself_or_its_json(value: JsonValue, forms: set[str]) -> None:
    assert set(text_forms(value)) == forms


def test_a_whole_float_is_no_way_round_a_glob_for_an_integer() -> None:
    assert text_globs(["1"]).cover(1.0) is Cover.PART


def test_the_text_of_a_string_is_taken_as_it_is() -> None:
    assert text_globs(["src/*"]).cover("src/../.env") is Cover.WHOLE
    assert text_globs([".env"]).cover("./.env") is Cover.NONE
