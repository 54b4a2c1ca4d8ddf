"""Hostile texts take no longer than others: twice the text, at most about twice the work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from dsh_plugin_redact import build_redactor

REDACTOR = build_redactor()
PIECES = [
    *("cookie: ", "token=", "password='", 'token="', 'pwd=\\"', "token=[redacted: ", "--token ", "secret[", "<token>"),
    *("eyJ", "eyJa.", "sk-", "sk-a", "://", "://a:", "://a:b@", "AKIA", "bearer ", "basic ", "basic a", "Q~", "aQ~"),
    *("-----BEGIN " + "PRIVATE KEY-----", "-----BEGIN ", "access key ", "access", "glpat-", "sig=", "SG.", "SG.a" * 6),
    *("hvs.", "ghp_", "github_" + "pat_", "xoxb-", "[redacted: x]", "\\", '"', "token", "hf_", "npm_"),
    *("pypi-A", "[", "key:[", "token: |\n a", "token: >\n", " token: |\n\n"),
    *("token: {", 'token:{"', "token: [[", 'token: {"a": "b", ', '"name": "token", "value": "'),
    *("name: token\nvalue: {", 'value: "', "value=", "value:a,name:token,"),
    *(
        "%3a%2f%2f",
        "%3a%2f%2fa%3a",
        "%3a%2f%2fa%3ab%40",
        "token%3d",
        "token\\u003d",
        '"--token", ',
        "basic%20",
        'auth":',
    ),
    *("curl -u a:", "curl -u a", "curl --user "),
    *('name="token" value="', 'value="a" name="'),
    *('[["token", "', "(('token','a'),", "name=" + "a" * 60 + ",value="),
]


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python some work runs: a measure that no busy machine disturbs."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("piece", PIECES)
def test_python_work_grows_with_the_text_and_not_faster(piece: str) -> None:
    short, long = piece * 200, piece * 800
    REDACTOR.text(long)  # So that nothing is compiled while lines are counted.
    assert lines_run(lambda: REDACTOR.text(long)) < 6 * lines_run(lambda: REDACTOR.text(short)) + 200


@pytest.mark.parametrize("piece", PIECES)
def test_a_megabyte_of_any_hostile_text_is_masked_in_seconds(piece: str) -> None:
    # A quadratic search would take hours: what is asked for here is only that this ends.
    text = piece * (1_000_000 // len(piece))
    assert len(REDACTOR.text(text)) <= 20 * len(text)


def test_ten_megabytes_of_ordinary_text_come_back_as_they_are() -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 220_000
    assert REDACTOR.text(text) is text
