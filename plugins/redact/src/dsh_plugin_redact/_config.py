"""The redactor's part of the config file, checked as a whole, and the redactor made of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from attrs import Attribute, field, frozen

from dsh_plugin_redact._forms import forms, kinds
from dsh_plugin_redact._keys import KeyNames, letters
from dsh_plugin_redact._mask import KIND
from dsh_plugin_redact._own import OwnRule, compile_pattern
from dsh_plugin_redact._pairs import KIND_OF_PAIRS, Pairs
from dsh_plugin_redact._redactor import Redactor

_LONGEST_NAME: Final = 64
_LONGEST_PATTERN: Final = 1000
_MOST_RULES: Final = 100
_MOST_SECONDS: Final = 10.0


def _kind(_rule: object, _field: Attribute[Any], name: str) -> None:
    if re.fullmatch(KIND, name) is None or len(name) > _LONGEST_NAME:
        raise ValueError(
            f"{name!r} cannot stand in a mask; write at most {_LONGEST_NAME} lower case letters, digits and hyphens"
        )


def _pattern(_rule: object, _field: Attribute[Any], source: str) -> None:
    if len(source) > _LONGEST_PATTERN:
        raise ValueError(f"a pattern has at most {_LONGEST_PATTERN} characters, not {len(source)}; write several rules")
    compile_pattern(source)


def _rules(_config: object, _field: Attribute[Any], rules: tuple[RuleConfig, ...]) -> None:
    if len(rules) > _MOST_RULES:
        raise ValueError(f"there are {len(rules)} rules, and at most {_MOST_RULES} are taken; join some with '|'")


def _shipped(_config: object, _field: Attribute[Any], names: tuple[str, ...]) -> None:
    known = (*kinds(), KIND_OF_PAIRS)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no shipped rule is called {', '.join(map(repr, unknown))}; there are: {', '.join(known)}")


def _names(_config: object, _field: Attribute[Any], names: tuple[str, ...]) -> None:
    short = [name for name in names if len(letters(name)) < 3]
    if short:
        raise ValueError(f"a name of secrets has three letters or more, not {', '.join(map(repr, short))}")


def _seconds(_config: object, _field: Attribute[Any], seconds: float) -> None:
    if not 0 < seconds <= _MOST_SECONDS:
        raise ValueError(f"a rule gets more than 0 and at most {_MOST_SECONDS:g} seconds, not {seconds!r}")


@frozen
class RuleConfig:
    """A rule of one's own: ``name`` is shown in the mask, ``pattern`` is what the ``regex`` package takes.

    If the pattern has a group called ``secret``, only that is masked.
    """

    name: str = field(validator=_kind)
    pattern: str = field(validator=_pattern)


@frozen
class Config:
    """What is masked, and where.

    ``keys`` are further names of secrets, ``rules`` further patterns; ``without`` names shipped rules that are off.
    ``timeout`` is the time of each rule of one's own, in seconds for each started million characters. ``logs`` masks
    Python log records, ``model`` what a call tells the model, and with it ``value`` the canonical value.
    """

    model: bool = False
    value: bool = field(default=False)
    logs: bool = True
    keys: tuple[str, ...] = field(default=(), validator=_names)
    rules: tuple[RuleConfig, ...] = field(default=(), validator=_rules)
    without: tuple[str, ...] = field(default=(), validator=_shipped)
    timeout: float = field(default=0.25, validator=_seconds)

    @value.validator
    def _value_needs_model(self, _field: Attribute[Any], value: bool) -> None:
        if value and not self.model:
            raise ValueError("the value is masked together with what the model sees; write model = true too")


def build_redactor(config: Config | None = None) -> Redactor:
    """A redactor by a config; without one, that of the shipped rules."""
    config = config or Config()
    off = frozenset(config.without)
    names = None if KIND_OF_PAIRS in off else KeyNames(config.keys)
    return Redactor(
        cased=forms(cased=True, without=off),
        uncased=forms(cased=False, without=off),
        names=names,
        pairs=None if names is None else Pairs(names, config.keys),
        own=tuple(_own(config.rules, config.timeout)),
    )


def _own(rules: Iterable[RuleConfig], seconds: float) -> Iterable[OwnRule]:
    return (OwnRule(rule.name, compile_pattern(rule.pattern), seconds) for rule in rules)
