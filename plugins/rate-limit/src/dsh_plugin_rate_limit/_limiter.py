"""Which counts a call has to keep, and what it is told if one is used up."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Hashable, Iterator

from attrs import frozen

from dsh_plugin_rate_limit._bucket import Rate
from dsh_plugin_rate_limit._config import Config, RuleConfig
from dsh_plugin_rate_limit._shelf import Shelf, Wait


@frozen
class Caller:
    """Who calls what. ``tool`` is ``None`` for a name that no tool has: such names share one count."""

    name: str
    tool: str | None
    agent: Hashable | None


@frozen
class Rule:
    """One rule with its buckets."""

    number: int
    config: RuleConfig
    tools: re.Pattern[str]
    shelf: Shelf

    def key(self, caller: Caller) -> Hashable:
        """What a call is counted under."""
        agent = caller.agent if self.config.per == "agent" else None
        return agent, None if self.config.together else caller.tool


@frozen
class Limiter:
    """The rules of a config."""

    rules: tuple[Rule, ...]

    def refusal(self, caller: Caller, now: float, *, dry_run: bool = False) -> str | None:
        """Why a call may not be made now, or ``None``. One that may takes a token of each rule, a dry run none."""
        rules = [rule for rule in self.rules if rule.tools.match(caller.name)]
        waits = [(rule, rule.shelf.wait(rule.key(caller), now)) for rule in rules]
        rule, wait = max(waits, key=lambda pair: pair[1].seconds, default=(None, Wait(0.0)))
        if rule is not None and wait.seconds > 0:
            return _refusal(rule, caller.name, wait)
        if not dry_run:
            for rule in rules:
                rule.shelf.take(rule.key(caller), now)
        return None


def build_limiter(config: Config) -> Limiter:
    """Compile the rules of a config, with nothing counted yet."""
    return Limiter(tuple(_rules(config)))


def _rules(config: Config) -> Iterator[Rule]:
    for number, rule in enumerate(config.rules, start=1):
        tools = re.compile("|".join(fnmatch.translate(glob) for glob in rule.tools))
        rate = Rate(rule.calls / rule.seconds, rule.burst or rule.calls)
        yield Rule(number, rule, tools, Shelf(rate, config.max_counters))


def _refusal(rule: Rule, name: str, wait: Wait) -> str:
    config, retry_after = rule.config, _rounded_up(wait.seconds)
    limit = f"{config.calls} calls in {config.seconds:g} s {_each(config)}"
    problem = "there is no room for one more count" if wait.no_room else "they are used up"
    return (
        f"Tool {name!r} is called too often: rate limit rule {rule.number} ({', '.join(config.tools)}) "
        f"allows {limit}, and {problem}. Try again in {retry_after} s (retry_after={retry_after})."
    )


def _each(config: RuleConfig) -> str:
    if config.together:
        return "for all these tools together" + (", per agent" if config.per == "agent" else "")
    return "per tool and agent" if config.per == "agent" else "per tool"


def _rounded_up(seconds: float) -> str:
    """Tenths of a second; waiting that long is always enough."""
    return f"{max(math.ceil(seconds * 10 - 1e-9), 1) / 10:.10g}"
