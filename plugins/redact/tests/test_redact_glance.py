"""The quick look that clears most texts and values: it may look twice for nothing, but never overlooks a secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dsh_plugin_redact import Redactor, build_redactor
from dsh_plugin_redact._forms import Form, forms
from dsh_plugin_redact._keys import KeyNames
from dsh_plugin_redact._pairs import _STEMS, Pairs
from hypothesis import example, given
from hypothesis import strategies as st

LETTERS = "fAkE0" * 12
PIECES = [
    *("gh", "ghp_", "gho_", "github_" + "pat_", "gl", "glpat-", "glffct-", "xox", "xoxe.xoxp-", "xoxb-", "xoxd-"),
    *("AKIA", "ASIA", "ABIA", "ACCA", "AIza", "ATBB", "ATCTT3", "ATATT3", "ya29.", "GOCSPX-", "sig=", "8Q~", "sk-"),
    *("gsk_", "hf_", "r8_", "xai-", "pplx-", "nvapi-", "tvly-", "xapp-", "hooks.slack.com/services/", "sk_live_"),
    *("rk_test_", "whsec_", "npm_", "pypi-A", "dckr_pat_", "dop_v1_", "hvs.", "SG.", "eyJ", "Bearer ", "BASIC "),
    *("https://a:", "redis://:", "@", "-----BEGIN ", "PRIVATE KEY-----", "password", "token", "apiKey", "jwt"),
    *("=", ": ", " => ", ">", "<", " ", "--", '"', "'", "\n", ".", "-", "_", "/", LETTERS, LETTERS[:20], "FAKE" * 4),
    *(
        "curl ",
        " -u",
        "%3D",
        "%3A%2F%2F",
        "%40",
        "%20",
        "\\u003d",
        "--password",
        '_auth="',
        "YWRhOmh1bnRlcjI=",
        "Value",
        "Name",
    ),
    *("a1", "access key ", "Cookie", "\u0130", "\u212a", "ß", "\ud800"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def all_forms(cased: bool) -> Iterator[Form]:
    """Every shipped form."""
    for group in forms(cased=cased)._groups:
        yield from group.forms


@given(TEXTS)
@example("ghp_" + LETTERS)
@example("xoxe.xoxp-" + LETTERS)
def test_a_form_that_is_not_searched_for_is_not_there(text: str) -> None:
    for cased in (True, False):
        searched = text if cased else text.lower()
        if len(searched) != len(text):
            continue
        possible = forms(cased=cased).possible(searched)
        for form in all_forms(cased):
            assert form in possible or not list(form.find(text, searched))


@given(TEXTS)
@example("--token x")
@example("<token>x")
def test_a_pair_that_is_not_searched_for_is_not_there(text: str) -> None:
    pairs = Pairs(KeyNames(("license plate",)), ("license plate",))
    folded = text.lower()
    if len(folded) == len(text) and not pairs.possible(folded):
        assert not list(pairs.find(text, folded, (*_STEMS, "license[_.-]?plate")))


@given(st.recursive(TEXTS | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
def test_a_value_is_masked_as_its_parts_are(value: Any) -> None:
    redactor = build_redactor()
    assert redactor.value(value) == redactor._value(value)


@pytest.mark.parametrize("size", [1, 5_000])
def test_a_secret_among_many_texts_is_masked(size: int) -> None:
    token = "gho_" + "fAkE0" * 8
    value = ["word " * size] * 20 + [token]
    assert build_redactor().value(value) == [*value[:-1], "[redacted: github-token]"]


def test_what_is_remembered_of_names_is_bounded() -> None:
    redactor: Redactor = build_redactor()
    for number in range(10_000):
        redactor.value({f"a{number}": 1, "x" * 1_000: 2})
    assert len(redactor._harmless) <= 5_000
    assert max(map(len, redactor._harmless)) < 100
