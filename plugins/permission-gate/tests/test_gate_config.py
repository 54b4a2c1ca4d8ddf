"""The config: every mistake is named, with its key, before the gate applies."""

from __future__ import annotations

from typing import Any

import pytest
from dsh_plugin_permission_gate import Config, RuleConfig, build_policy


def test_without_rules_everything_is_asked() -> None:
    assert build_policy(Config()).default == "ask"


def test_rules_are_numbered_in_the_order_of_the_file() -> None:
    policy = build_policy(Config("deny", (RuleConfig("allow", ("a",)), RuleConfig("ask", ("b",)))))
    assert [(rule.number, rule.action) for rule in policy.rules] == [(1, "allow"), (2, "ask")]


@pytest.mark.parametrize(
    ("mistake", "named"),
    [
        ({"action": "denied"}, ["action", "denied"]),
        ({"tools": ()}, ["no glob"]),
        ({"tools": ("a[", "b", "c[")}, ["'a['", "'c['"]),
        ({"arguments": {"a..b": ("x",), "c": (), "d": ("[",)}}, ["'a..b'", "c: there is no glob", "d: glob '['"]),
        ({"arguments": {"path": "*.env"}}, ["path: globs stand in a list; write ['*.env']"]),
        ({"paths": {"path": ("./src/*", "src/", "a\\b")}}, ["write 'src/*'", "write 'src'", "write 'a/b'"]),
    ],
)
def test_a_mistake_is_refused_with_all_its_places(mistake: dict[str, Any], named: list[str]) -> None:
    rule: dict[str, Any] = {"action": "deny", "tools": ("*",), **mistake}
    with pytest.raises(ValueError) as caught:
        RuleConfig(**rule)
    assert [word for word in named if word not in str(caught.value)] == []


def test_a_default_that_is_no_action_is_refused() -> None:
    default: Any = "alow"
    with pytest.raises(ValueError, match="alow"):
        Config(default=default)
