"""JSON values: keys, nested values, and what stands under the name of a secret."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from dsh_plugin_redact import Config, build_redactor
from hypothesis import given
from hypothesis import strategies as st

TOKEN = "gho_" + "fAkE0" * 8
MASK = "[redacted: secret]"
REDACTOR = build_redactor()

SECRET_NAMES = (
    *("password", "passwd", "PASSWORD", "dbPassword", "DB_PASSWORD_2", "password-hash", "user.password", "PGPASSWORD"),
    *("secret", "clientSecret", "client_secret", "mysecret", "SECRET_KEY_BASE", "token", "accessToken", "x-auth-token"),
    *("api_key", "apikey", "apiKey", "APIKEY", "X-API-Key", "private_key", "privateKeyPem", "authorization"),
    *("Authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "cookies", "credentials", "passphrase", "pwd"),
    *("aws_secret_access_key", "signing-key", "AccountKey", "sessionId", "connectionString", "refresh_token"),
    "ｐａｓｓｗｏｒｄ",
)
OTHER_NAMES = (
    *("name", "key", "keyboard", "primary_key", "public_key", "tokenizer", "secretary", "compass", "passenger"),
    *("token_count", "tokenLimit", "password_policy", "secret_name", "cookie_name", "token_type", "author", "pass"),
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_a_value_under_the_name_of_a_secret_is_masked(name: str) -> None:
    assert REDACTOR.value({name: "x", "n": 1}) == {name: MASK, "n": 1}


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_value_under_another_name_stays(name: str) -> None:
    value = {name: "x"}
    assert REDACTOR.value(value) is value


def test_numbers_are_masked_too_but_not_what_tells_nothing() -> None:
    value: Any = {"password": 1234, "token": None, "secret": True, "cookie": "", "max_tokens": 4096}
    assert REDACTOR.value(value) == {**value, "password": MASK}


def test_everything_below_the_name_of_a_secret_is_masked() -> None:
    value: Any = {"credentials": {"user": "ada", "list": ["a", ["b", 3]], "on": True}}
    assert REDACTOR.value(value) == {"credentials": {"user": MASK, "list": [MASK, [MASK, MASK]], "on": True}}


def test_a_neighbour_may_name_the_secret() -> None:
    value = [{"name": "DB_PASSWORD", "value": "x"}, {"key": "PATH", "value": "/bin"}]
    assert REDACTOR.value(value) == [{"name": "DB_PASSWORD", "value": MASK}, {"key": "PATH", "value": "/bin"}]


def test_a_neighbour_may_be_written_with_a_capital() -> None:
    value = {"Name": "DB_PASSWORD", "Value": "x"}
    assert REDACTOR.value(value) == {"Name": "DB_PASSWORD", "Value": MASK}
    assert REDACTOR.value(harmless := {"Name": "HOST", "Value": "x"}) is harmless


@pytest.mark.parametrize(
    ("words", "masked"),
    [
        (["tool", "--password", "x", "y"], ["tool", "--password", MASK, "y"]),
        (["--api-key", "x", "--token", "--quiet"], ["--api-key", MASK, "--token", "--quiet"]),
        ({"argv": ["a", "--token", ["x", 1]]}, {"argv": ["a", "--token", [MASK, MASK]]}),
    ],
)
def test_the_word_behind_an_option_of_a_secret_is_masked(words: Any, masked: Any) -> None:
    assert REDACTOR.value(words) == masked


@pytest.mark.parametrize("words", [["password", "x"], ["--token-file", "x"], ["--token"], ["-- token", "x"]])
def test_other_words_of_a_command_stay(words: Any) -> None:
    assert REDACTOR.value(words) is words


@pytest.mark.parametrize(
    ("pairs", "masked"),
    [
        ([["X-Api-Key", "a"], ["Accept", "b"]], [["X-Api-Key", MASK], ["Accept", "b"]]),
        ([["Cookie", ["a", "b"]]], [["Cookie", [MASK, MASK]]]),
        ([["n", 1], ["password", {"old": "a", "n": 1}]], [["n", 1], ["password", {"old": MASK, "n": MASK}]]),
        ({"headers": [["authorization", "Custom a"]]}, {"headers": [["authorization", MASK]]}),
    ],
)
def test_a_pair_in_a_list_of_pairs_may_name_the_secret(pairs: Any, masked: Any) -> None:
    """As headers are kept."""
    assert REDACTOR.value(pairs) == masked


@pytest.mark.parametrize(
    "value",
    [["password", "user"], [["password"], ["a", "b"]], [["token", "a", "b"]], [["token", "a"], "b"], [[1, "token"]]],
)
def test_a_list_of_anything_else_names_nothing(value: Any) -> None:
    assert REDACTOR.value(value) is value


def test_a_secret_in_key_position_is_masked_and_its_value_kept() -> None:
    assert REDACTOR.value({TOKEN: {"a": 1}}) == {"[redacted: github-token]": {"a": 1}}


def test_two_secrets_in_key_position_stay_two_members() -> None:
    masked: Any = REDACTOR.value({TOKEN: 1, "b": 2, TOKEN + "7": 3})
    assert list(masked.values()) == [1, 2, 3]
    assert "fAkE" not in json.dumps(masked)


def test_a_recognised_kind_is_kept_under_the_name_of_a_secret() -> None:
    assert REDACTOR.value({"token": TOKEN}) == {"token": "[redacted: github-token]"}


def test_a_value_without_a_secret_is_the_very_same() -> None:
    value: Any = {"a": [1, {"b": "text"}], "c": None, "d": 1.5}
    assert REDACTOR.value(value) is value


def test_a_changed_copy_leaves_the_original_alone() -> None:
    value = {"a": [{"password": "x"}]}
    REDACTOR.value(value)
    assert value == {"a": [{"password": "x"}]}


def test_a_value_too_deep_to_walk_is_masked_whole() -> None:
    value: Any = TOKEN
    for _ in range(100_000):
        value = [value]
    assert REDACTOR.value(value) == "[redacted: nested-too-deeply]"


def test_names_of_ones_own_count_whatever_separates_their_words() -> None:
    redactor = build_redactor(Config(keys=("license plate",)))
    assert redactor.value({"licensePlate": "x"}) == {"licensePlate": MASK}
    assert redactor.text("LICENSE_PLATE=x1") == f"LICENSE_PLATE={MASK}"


NAMES = st.sampled_from(["a", "b", "password", "tokens", "name", "value", "Name", "Value", TOKEN])
KEYS = NAMES | st.text(string.ascii_letters, max_size=5)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from([TOKEN, MASK, "password=x", "--token"])
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=12
)


@given(VALUES)
def test_masking_a_value_twice_is_masking_it_once(value: Any) -> None:
    once = REDACTOR.value(value)
    assert REDACTOR.value(once) == once


@given(VALUES)
def test_no_secret_survives_however_it_is_nested(value: Any) -> None:
    assert TOKEN not in json.dumps(REDACTOR.value(value))
