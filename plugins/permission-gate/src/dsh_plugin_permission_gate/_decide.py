"""What the rules decide about a call: a pure function over frozen values.

The first rule that matches decides. What it takes to match depends on what follows from it, so that doubt never opens
the gate:

=========  =================================  ====================================================
action     every named argument is covered    each has a value that is covered, in some of its forms
=========  =================================  ====================================================
``deny``   denies                             denies
``ask``    asks                               asks, unless a later rule or the default denies
``allow``  allows                             goes on to the next rule
=========  =================================  ====================================================

An argument that the call does not have is not covered, and the rule does not match.
"""

from __future__ import annotations

from typing import Final

from dsh_hookspecs import Allow, Ask, Deny, JsonValue, PreToolDecision

from dsh_plugin_permission_gate import _texts
from dsh_plugin_permission_gate._globs import NONE, WHOLE
from dsh_plugin_permission_gate._rules import Policy, Rule

_ALLOW: Final = Allow()


def decide(policy: Policy, tool: str, arguments: JsonValue) -> PreToolDecision:
    """Allow, deny or ask: what the first rule that matches says, else the default."""
    doubt: Ask | None = None
    for rule in policy.rules:
        cover = rule.cover(tool, arguments)
        if cover is NONE:
            continue
        if rule.action == "deny" or cover is WHOLE:
            decision = _outcome(rule, tool)
            break
        if rule.action == "ask" and doubt is None:
            doubt = Ask(_texts.asked_by_rule(rule, tool))
    else:
        decision = _default(policy, tool)
    return decision if doubt is None or isinstance(decision, Deny) else doubt


def _outcome(rule: Rule, tool: str) -> PreToolDecision:
    if rule.action == "deny":
        return Deny(_texts.denied_by_rule(rule, tool))
    return Ask(_texts.asked_by_rule(rule, tool)) if rule.action == "ask" else _ALLOW


def _default(policy: Policy, tool: str) -> PreToolDecision:
    if policy.default == "deny":
        return Deny(_texts.denied_by_default(policy, tool))
    return Ask(_texts.asked_by_default(tool)) if policy.default == "ask" else _ALLOW
