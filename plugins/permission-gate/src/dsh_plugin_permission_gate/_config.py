"""The gate's part of the config file, checked as a whole, and the policy made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from attrs import Attribute, field, frozen, validators

from dsh_plugin_permission_gate._globs import ValueGlobs, globs, path_globs, text_globs
from dsh_plugin_permission_gate._rules import Action, Condition, Policy, Rule
from dsh_plugin_permission_gate._select import parse_path

_Compile: TypeAlias = Callable[[Sequence[str]], Any]
_Globs: TypeAlias = Mapping[str, Sequence[str]]
_Validator: TypeAlias = Callable[[object, "Attribute[Any]", Any], None]

_ACTIONS: Final = ("allow", "deny", "ask")


def _row(compile_globs: _Compile) -> _Validator:
    """A validator for a list of globs: it names every one that is none."""

    def validate(_rule: object, _field: Attribute[Any], sources: Sequence[str]) -> None:
        _raise_all(_row_problems(sources, compile_globs))

    return validate


def _table(compile_globs: _Compile) -> _Validator:
    """A validator for a table that leads from argument paths to globs."""

    def validate(_rule: object, _field: Attribute[Any], table: _Globs) -> None:
        _raise_all(_table_problems(table, compile_globs))

    return validate


@frozen
class RuleConfig:
    """One rule: an action for the calls of some tools, perhaps only those with certain arguments.

    ``tools`` are globs for the tool's name. ``arguments`` and ``paths`` lead from an argument path to globs; those of
    ``arguments`` are held against the text of the values there, those of ``paths`` against every form of the file names
    there. ``reason`` ends up in the text that the model reads.
    """

    action: Action = field(validator=validators.in_(_ACTIONS))
    tools: tuple[str, ...] = field(validator=_row(globs))
    arguments: dict[str, tuple[str, ...]] = field(factory=dict, validator=_table(text_globs))
    paths: dict[str, tuple[str, ...]] = field(factory=dict, validator=_table(path_globs))
    reason: str | None = None


@frozen
class Config:
    """Rules in order, of which the first that matches decides, and what happens where none does."""

    default: Action = field(default="ask", validator=validators.in_(_ACTIONS))
    rules: tuple[RuleConfig, ...] = ()


def build_policy(config: Config) -> Policy:
    """Compile the rules of a config."""
    rules = tuple(_rule(number, rule) for number, rule in enumerate(config.rules, start=1))
    return Policy(rules, config.default)


def _rule(number: int, config: RuleConfig) -> Rule:
    conditions = (*_conditions(config.arguments, text_globs), *_conditions(config.paths, path_globs))
    return Rule(number, config.action, globs(config.tools), conditions, config.reason)


def _conditions(table: _Globs, compile_globs: Callable[[Sequence[str]], ValueGlobs]) -> Iterator[Condition]:
    for path, sources in table.items():
        yield Condition(parse_path(path), compile_globs(sources))


def _table_problems(table: _Globs, compile_globs: _Compile) -> Iterator[str]:
    for path, sources in table.items():
        yield from _failure(parse_path, path)
        for problem in _row_problems(sources, compile_globs):
            yield f"{path}: {problem}"


def _row_problems(sources: Sequence[str], compile_globs: _Compile) -> Iterator[str]:
    if isinstance(sources, str):
        yield f"globs stand in a list; write [{sources!r}]"
        return
    if not sources:
        yield "there is no glob here, so nothing would match; write ['*'] if anything may"
    for source in sources:
        yield from _failure(compile_globs, [source])


def _failure(compile_one: Callable[[Any], Any], source: object) -> Iterator[str]:
    try:
        compile_one(source)
    except ValueError as error:
        yield str(error)


def _raise_all(problems: Iterable[str]) -> None:
    found = "; ".join(problems)
    if found:
        raise ValueError(found)
