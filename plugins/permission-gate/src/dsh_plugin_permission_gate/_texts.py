"""What the gate says: which tool, which rule, and what would pass.

Arguments are never quoted: what a rule keeps from a tool must not reach a log by way of the refusal.
"""

from __future__ import annotations

from collections.abc import Iterable

from dsh_plugin_permission_gate._rules import Condition, Policy, Rule


def denied_by_rule(rule: Rule, tool: str) -> str:
    return f"The permission gate denies {tool!r} by {_cite(rule)} {_way_round(rule)}"


def asked_by_rule(rule: Rule, tool: str) -> str:
    return f"The permission gate asks about {tool!r} by {_cite(rule)}"


def denied_by_default(policy: Policy, tool: str) -> str:
    return f"The permission gate denies {tool!r} by default: no rule covers this call. {_way_in(policy, tool)}"


def asked_by_default(tool: str) -> str:
    return f"The permission gate asks about {tool!r} by default: no rule covers this call."


def _cite(rule: Rule) -> str:
    text = f"rule {rule.number} ({rule.action} {_rule_terms(rule)})"
    return f"{text}: {_sentence(rule.reason)}" if rule.reason else f"{text}."


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _rule_terms(rule: Rule) -> str:
    tools = ", ".join(rule.tools.sources)
    return (
        f"{tools} where {_join((_terms(each, 'matches') for each in rule.conditions), 'and')}"
        if rule.conditions
        else tools
    )


def _terms(condition: Condition, verb: str, anywhere: str = "any argument") -> str:
    place = anywhere if condition.path.source == "**" else condition.path.source
    return f"{place} {verb} {_join(condition.globs.sources, 'or')}"


def _way_round(rule: Rule) -> str:
    if not rule.conditions:
        return "No arguments make it pass; use another tool, or have the rule changed."
    outside = _join((f"no {_terms(condition, 'matching', 'argument')}" for condition in rule.conditions), "or")
    return f"A call that has {outside} would pass this rule."


def _way_in(policy: Policy, tool: str) -> str:
    """The rules that would let the tool through with other arguments."""
    doors = [rule for rule in policy.rules if rule.action != "deny" and rule.tools.match(tool)]
    if not doors:
        return "No arguments make it pass; use another tool, or have a rule added that allows it."
    return f"What would pass: {'; '.join(f'rule {rule.number} ({rule.action} {_rule_terms(rule)})' for rule in doors)}."


def _join(parts: Iterable[str], word: str) -> str:
    *most, last = parts
    return f"{', '.join(most)} {word} {last}" if most else last
