"""Rules of one's own: what they mask, and what becomes of those that take too long."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_plugin_redact import Config, Redactor, RuleConfig, build_redactor

from dsh_runtime import HostError, open_host


def by_rule(pattern: str, **config: Any) -> Redactor:
    return build_redactor(Config(rules=(RuleConfig("own", pattern),), **config))


def test_what_a_rule_of_ones_own_matches_is_masked() -> None:
    assert by_rule(r"T-\d+").text("see T-123, T-4") == "see [redacted: own], [redacted: own]"


def test_only_the_group_called_secret_is_masked() -> None:
    assert by_rule(r"ticket (?P<secret>\d+)").text("ticket 123") == "ticket [redacted: own]"


@pytest.mark.parametrize("pattern", [r"\w+", ".*", r"\[", "redacted", "x*", r"own\]", r"[^x]"])
def test_a_rule_that_matches_masks_leaves_them_as_they_are(pattern: str) -> None:
    redactor = by_rule(pattern)
    once = redactor.text("some password=hunter2 text")
    assert redactor.text(once) == once


@pytest.mark.parametrize("pattern", [r"ab\[re", r"et\]ab", r"ab.*ab"])
def test_a_rule_that_cuts_into_a_mask_takes_all_of_it(pattern: str) -> None:
    masked = by_rule(pattern).text("ab[redacted: secret]ab")
    assert masked.replace("[redacted: own]", "") in ("", "ab")


def test_a_rule_that_takes_too_long_masks_the_whole_text() -> None:
    redactor = by_rule(r"^(\w|a\w?)+$", timeout=0.02)
    assert redactor.text("a" * 5000 + "!") == "[redacted: own-timed-out]"


def test_a_short_text_is_looked_at_too() -> None:
    assert by_rule("z").text("z") == "[redacted: own]"


@pytest.mark.trio
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"rules": [{"name": "own", "pattern": "("}]}, "no regular expression"),
        ({"rules": [{"name": "own", "pattern": "a" * 1001}]}, "at most 1000 characters"),
        ({"rules": [{"name": "Own Rule", "pattern": "a"}]}, "cannot stand in a mask"),
        ({"rules": [{"name": "own", "pattern": "a"}] * 101}, "at most 100"),
        ({"without": ["aws"]}, "no shipped rule is called 'aws'"),
        ({"value": True}, "write model = true too"),
        ({"keys": ["a"]}, "three letters"),
        ({"timeout": 0.0}, "more than 0"),
    ],
)
async def test_a_config_with_a_mistake_stops_the_start_and_says_why(config: dict[str, Any], told: str) -> None:
    with pytest.raises(HostError, match=told):
        async with open_host({"plugin": [{"id": "redact", "use": "redact", "config": config}]}):
            pass  # pragma: no cover
