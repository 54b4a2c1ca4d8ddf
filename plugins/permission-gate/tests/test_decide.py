"""What the rules decide: the order, doubt, and what the refusal says. No host runs here."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import evolve
from dsh_hookspecs import Allow, Ask, Deny, JsonValue, PreToolDecision
from dsh_plugin_permission_gate import Config, Policy, RuleConfig, build_policy, decide
from hypothesis import given
from hypothesis import strategies as st

STRICTNESS: Final = {Allow: 0, Ask: 1, Deny: 2}

NAMES = st.sampled_from([".env", "src/a", "src/../.env", "SRC/a", "src\\..\\.env", "a b", ""])
VALUES = NAMES | st.lists(NAMES, max_size=2) | st.dictionaries(st.sampled_from(["in", ".env"]), NAMES, max_size=1)
ARGUMENTS = st.dictionaries(st.sampled_from(["path", "other"]), VALUES | st.none() | st.just(1), max_size=2)
TOOLS = st.sampled_from(["fs_read", "fs_write", "greet"])
TABLES = st.dictionaries(
    st.sampled_from(["path", "path.*", "**", "other"]),
    st.lists(st.sampled_from(["*", "src/*", "**/.env", "SRC/*", "1", "a b"]), min_size=1, max_size=2).map(tuple),
    max_size=2,
)
ACTIONS: Any = st.sampled_from(["allow", "deny", "ask"])
RULES = st.builds(
    RuleConfig,
    action=ACTIONS,
    tools=st.lists(st.sampled_from(["*", "fs_*", "fs_write"]), min_size=1, max_size=2).map(tuple),
    arguments=TABLES,
    paths=TABLES,
)
CONFIGS = st.builds(Config, default=ACTIONS, rules=st.lists(RULES, max_size=4).map(tuple))


def policy(*rules: RuleConfig, default: Any = "ask") -> Policy:
    return build_policy(Config(default, rules))


def strictness(decision: PreToolDecision) -> int:
    return STRICTNESS[type(decision)]


def test_the_first_rule_that_matches_decides() -> None:
    gate = policy(RuleConfig("allow", ("fs_read",)), RuleConfig("deny", ("fs_*",)), RuleConfig("allow", ("*",)))
    assert decide(gate, "fs_read", {}) == Allow()
    assert isinstance(decide(gate, "fs_write", {}), Deny)
    assert decide(gate, "greet", {}) == Allow()


@pytest.mark.parametrize(("default", "decision"), [("allow", Allow), ("deny", Deny), ("ask", Ask)])
def test_the_default_decides_where_no_rule_matches(default: str, decision: type) -> None:
    assert isinstance(decide(policy(RuleConfig("deny", ("fs_*",)), default=default), "greet", {}), decision)


def test_a_rule_matches_only_if_all_its_arguments_do() -> None:
    gate = policy(RuleConfig("deny", ("*",), {"mode": ("w*",), "path": ("*.env",)}), default="allow")
    assert isinstance(decide(gate, "open", {"mode": "wb", "path": ".env"}), Deny)
    assert decide(gate, "open", {"mode": "rb", "path": ".env"}) == Allow()


@pytest.mark.parametrize("glob", ["*", "null", ""])
def test_an_argument_that_is_missing_matches_no_glob(glob: str) -> None:
    assert decide(policy(RuleConfig("deny", ("*",), {"path": (glob,)}), default="allow"), "t", {}) == Allow()
    assert isinstance(decide(policy(RuleConfig("allow", ("*",), {"path": (glob,)}), default="deny"), "t", {}), Deny)


def test_one_bad_value_among_many_denies() -> None:
    gate = policy(RuleConfig("deny", ("*",), paths={"paths.*": ("**/.env",)}), default="allow")
    assert isinstance(decide(gate, "read_many", {"paths": ["a", ".env"]}), Deny)


def test_one_good_value_among_many_does_not_allow() -> None:
    gate = policy(RuleConfig("allow", ("*",), paths={"paths.*": ("src/*",)}), default="deny")
    assert decide(gate, "read_many", {"paths": ["src/a", "src/b"]}) == Allow()
    assert isinstance(decide(gate, "read_many", {"paths": ["src/a", "/etc/shadow"]}), Deny)


def test_a_name_with_two_readings_is_denied_by_either_and_allowed_by_neither_alone() -> None:
    name = "src\\..\\.env"
    assert isinstance(decide(policy(RuleConfig("deny", ("*",), paths={"p": (".env",)})), "t", {"p": name}), Deny)
    assert isinstance(decide(policy(RuleConfig("allow", ("*",), paths={"p": ("src*",)})), "t", {"p": name}), Ask)


def test_an_ask_in_doubt_does_not_keep_a_later_rule_from_denying() -> None:
    asks = RuleConfig("ask", ("*",), paths={"p": ("docs/*",)})
    denies = RuleConfig("deny", ("*",), paths={"p": ("**/secret",)})
    assert isinstance(decide(policy(asks, denies), "t", {"p": "docs/../secret"}), Deny)
    assert isinstance(decide(policy(asks, denies, default="allow"), "t", {"p": "docs/../open"}), Ask)
    assert isinstance(decide(policy(asks, denies), "t", {"p": "docs/secret"}), Ask)


def test_two_stars_find_a_name_wherever_it_hides() -> None:
    gate = policy(RuleConfig("deny", ("*",), paths={"**": ("**/.env",)}), default="allow")
    hidden: list[JsonValue] = [{"a": [{"b": "x/.env"}]}, {"files": {"conf/.ENV": "text"}}, [".env"]]
    assert all(isinstance(decide(gate, "t", arguments), Deny) for arguments in hidden)
    assert decide(gate, "t", {"a": ["environment"]}) == Allow()


def test_values_that_are_no_strings_match_by_their_json() -> None:
    gate = policy(RuleConfig("deny", ("*",), {"recursive": ("true",)}), default="allow")
    assert isinstance(decide(gate, "rm", {"recursive": True}), Deny)
    assert decide(gate, "rm", {"recursive": False}) == Allow()


def test_a_denial_names_the_tool_the_rule_its_reason_and_what_would_pass() -> None:
    rule = RuleConfig("deny", ("fs_write",), paths={"path": ("**/.env", "*.pem")}, reason="secrets stay where they are")
    decision = decide(policy(RuleConfig("allow", ("greet",)), rule), "fs_write", {"path": "x/.env"})
    assert decision == Deny(
        "The permission gate denies 'fs_write' by rule 2 (deny fs_write where path matches **/.env or *.pem): secrets "
        "stay where they are. A call that has no path matching **/.env or *.pem would pass this rule."
    )


def test_a_denial_by_two_stars_reads_as_a_sentence() -> None:
    gate = policy(RuleConfig("deny", ("*",), paths={"**": ("**/.env",)}), default="allow")
    assert decide(gate, "t", {"a": ".env"}) == Deny(
        "The permission gate denies 't' by rule 1 (deny * where any argument matches **/.env). A call that has no "
        "argument matching **/.env would pass this rule."
    )


def test_a_denial_of_a_tool_as_such_says_that_no_arguments_help() -> None:
    decision = decide(policy(RuleConfig("deny", ("fs_*", "sh"))), "sh", {})
    assert decision == Deny(
        "The permission gate denies 'sh' by rule 1 (deny fs_*, sh). No arguments make it pass; use another tool, or "
        "have the rule changed."
    )


def test_a_denial_by_default_names_the_rules_that_would_let_the_tool_through() -> None:
    gate = policy(RuleConfig("allow", ("fs_read",), paths={"path": ("src/*",)}), default="deny")
    assert decide(gate, "fs_read", {"path": "/etc/passwd"}) == Deny(
        "The permission gate denies 'fs_read' by default: no rule covers this call. What would pass: rule 1 (allow "
        "fs_read where path matches src/*)."
    )
    assert "have a rule added" in getattr(decide(gate, "sh", {}), "reason", "")


def test_an_ask_names_the_tool_and_the_rule() -> None:
    decision = decide(policy(RuleConfig("ask", ("sh",), reason="it runs anything.")), "sh", {})
    assert decision == Ask("The permission gate asks about 'sh' by rule 1 (ask sh): it runs anything.")


@given(CONFIGS, TOOLS, ARGUMENTS)
def test_a_refusal_never_quotes_the_arguments(config: Config, tool: str, arguments: dict[str, JsonValue]) -> None:
    secret = "3ecret-of-the-caller"
    decision = decide(build_policy(config), tool, {**arguments, "path": f"src/{secret}", secret: ".env"})
    assert secret not in (getattr(decision, "reason", None) or "")


@given(CONFIGS, RULES, TOOLS, ARGUMENTS)
def test_a_deny_rule_in_front_never_allows_more(
    config: Config, rule: RuleConfig, tool: str, arguments: dict[str, JsonValue]
) -> None:
    stricter = evolve(config, rules=(evolve(rule, action="deny"), *config.rules))
    before, after = (decide(build_policy(each), tool, arguments) for each in (config, stricter))
    assert strictness(after) >= strictness(before)


@given(CONFIGS, RULES, TOOLS, ARGUMENTS)
def test_an_allow_rule_in_front_never_forbids_more(
    config: Config, rule: RuleConfig, tool: str, arguments: dict[str, JsonValue]
) -> None:
    milder = evolve(config, rules=(evolve(rule, action="allow"), *config.rules))
    before, after = (decide(build_policy(each), tool, arguments) for each in (config, milder))
    assert strictness(after) <= strictness(before)


@given(CONFIGS, TOOLS, ARGUMENTS)
def test_a_stricter_default_never_allows_more(config: Config, tool: str, arguments: dict[str, JsonValue]) -> None:
    defaults: list[Any] = ["allow", "ask", "deny"]
    decisions = [decide(build_policy(evolve(config, default=default)), tool, arguments) for default in defaults]
    assert sorted(decisions, key=strictness) == decisions


@given(CONFIGS, TOOLS, ARGUMENTS, VALUES)
def test_deny_rules_alone_are_not_appeased_by_one_more_argument(
    config: Config, tool: str, arguments: dict[str, JsonValue], value: JsonValue
) -> None:
    denies_only = evolve(config, default="allow", rules=tuple(r for r in config.rules if r.action == "deny"))
    gate = build_policy(denies_only)
    before, after = decide(gate, tool, arguments), decide(gate, tool, {**arguments, "more": value})
    assert strictness(after) >= strictness(before)
