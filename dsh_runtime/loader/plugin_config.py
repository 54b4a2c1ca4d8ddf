"""Build the config object that a plugin is given, from what the file says and what the plugin declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .blame import summary_of
from .errors import ConfigError, ConfigProblem, LoaderError, PluginLoadError
from .model import NO_TRACE, PluginRow, Trace
from .nodes import UnusableValueError, build_tree, to_plain


def build_row_config(schema: object, row: PluginRow) -> Any:
    """The config object of a row, checked against the ``Config`` of the plugin that it loads."""
    return build_config(schema, row.config, owner=row.id, trace=row.trace.below("config"))


def build_config(schema: object, config: object, *, owner: str, trace: Trace = NO_TRACE) -> Any:
    """Check ``config`` against ``schema`` and return what ``apply`` is to be given.

    ``schema`` is the plugin's ``Config``: an attrs class (gives an instance of it), a JSON Schema (gives a dict of its
    own), or ``None`` (gives ``None``, and no config is accepted). Raises one ``ConfigError`` that lists every
    offending path, with its place where ``trace`` knows it; ``owner`` is the plugin's id.
    """
    is_class = isinstance(schema, type) and attrs.has(schema)
    if is_class and isinstance(config, schema):  # type: ignore[arg-type]
        return config
    values = _detach(config, owner, trace)
    if schema is None:
        return _refuse_any(values, owner, trace)
    if is_class:
        return _build_class(schema, values, owner, trace)
    if isinstance(schema, Mapping):
        return _check_schema(schema, values, owner, trace)
    raise _unusable(owner, f"is {type(schema).__name__!r}; it must be an attrs class or a JSON Schema", trace)


def _detach(config: object, owner: str, trace: Trace) -> dict[str, Any]:
    """A copy that the plugin may keep and change."""
    if config is not None and not isinstance(config, Mapping):
        message = f"the config of plugin '{owner}' is {type(config).__name__!r}; it must be a table"
        raise ConfigError([ConfigProblem(trace.root, message, trace.where())])
    try:
        values = to_plain(build_tree(config or {}, lambda path: None))
    except UnusableValueError as error:
        path = (*trace.root, *error.problem.path)
        raise ConfigError([ConfigProblem(path, error.problem.message, trace.where())]) from None
    assert isinstance(values, dict)
    return values


def _refuse_any(values: dict[str, Any], owner: str, trace: Trace) -> None:
    if values:
        keys = ", ".join(repr(key) for key in list(values)[:5])
        message = f"plugin '{owner}' takes no config, and was given {keys}; remove it"
        raise ConfigError([ConfigProblem(trace.root, message, trace.where())])


def _build_class(schema: Any, values: dict[str, Any], owner: str, trace: Trace) -> Any:
    from cattrs import BaseValidationError

    from .explain import explain, find_unsupported
    from .strict import ExpectedError, strict_converter

    try:
        return strict_converter().structure(values, schema)
    except (BaseValidationError, ExpectedError) as error:
        unsupported = find_unsupported(error)
        if unsupported is not None:
            raise _unusable(owner, f"cannot be built: {summary_of(unsupported)}", trace) from unsupported
        raise _refused(owner, explain(error, values, trace)) from None  # what it was raised from may quote secrets
    except Exception as error:
        raise _unusable(owner, f"cannot be built: {summary_of(error)}", trace) from error


def _check_schema(schema: Mapping[str, Any], values: dict[str, Any], owner: str, trace: Trace) -> dict[str, Any]:
    from .json_schema import UnusableSchemaError, check_against_schema

    try:
        problems = check_against_schema(schema, values, trace)
    except UnusableSchemaError as error:
        raise _unusable(owner, f"cannot be used: {error}", trace) from error
    if problems:
        raise _refused(owner, problems)
    return values


def _refused(owner: str, problems: list[ConfigProblem]) -> ConfigError:
    return ConfigError(attrs.evolve(problem, message=f"plugin '{owner}': {problem.message}") for problem in problems)


def _unusable(owner: str, what: str, trace: Trace) -> LoaderError:
    """The fault of the plugin's author, not of the config's."""
    message = f"'Config' of plugin '{owner}' {what}"
    return PluginLoadError([ConfigProblem(trace.root, message, trace.where())])
