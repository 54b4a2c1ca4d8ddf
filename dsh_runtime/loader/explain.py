"""Turn what a strict converter raised into one problem for each offending path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from cattrs import BaseValidationError, ClassValidationError
from cattrs.errors import (
    AttributeValidationNote,
    ForbiddenExtraKeysError,
    IterableValidationNote,
    StructureHandlerNotFoundError,
)

from .blame import summary_of
from .errors import ConfigProblem, KeyPath, did_you_mean, kind_of, quoted, shorten
from .model import Trace
from .strict import ExpectedError


def explain(error: Exception, value: object, trace: Trace) -> list[ConfigProblem]:
    """The problems behind ``error``, which was raised for ``value``; ``trace`` knows where its parts stand."""
    return list(_Explainer(trace, value).explain(error, ()))


def find_unsupported(error: BaseException) -> StructureHandlerNotFoundError | None:
    """The complaint, somewhere in ``error``, that the plugin declares a type for which no config can be built."""
    if isinstance(error, StructureHandlerNotFoundError):
        return error
    inner = error.exceptions if isinstance(error, BaseValidationError) else ()
    return next((found for failure in inner if (found := find_unsupported(failure))), None)


@attrs.frozen
class _Explainer:
    trace: Trace
    root: object

    def explain(self, error: BaseException, path: KeyPath) -> Iterator[ConfigProblem]:
        if isinstance(error, BaseValidationError):
            for failure in error.exceptions:
                yield from self._explain_part(failure, error, path)
        elif isinstance(error, ExpectedError):
            yield self._problem(path, f"expected {error}; got {self._describe(path)}")
        else:
            yield self._problem(path, self._quote(error, path))

    def _explain_part(self, failure: BaseException, whole: BaseException, path: KeyPath) -> Iterator[ConfigProblem]:
        key = _key_of(failure, whole)
        if isinstance(failure, ForbiddenExtraKeysError):
            yield from self._explain_unknown(failure, path)
        elif isinstance(failure, KeyError) and isinstance(whole, ClassValidationError) and not self._has(path, key):
            yield self._problem(path, f"the required key {quoted(str(key))} is missing; add it")
        else:
            yield from self.explain(failure, path if key is None else (*path, key))

    def _explain_unknown(self, failure: ForbiddenExtraKeysError, path: KeyPath) -> Iterator[ConfigProblem]:
        known = _field_names(failure.cl)
        for key in sorted(failure.extra_fields, key=str):
            message = f"there is no key {quoted(str(key))} here; {did_you_mean(str(key), known)}"
            yield self._problem((*path, key), message)

    def _problem(self, path: KeyPath, message: str) -> ConfigProblem:
        return ConfigProblem((*self.trace.root, *path), message, self.trace.where(path))

    def _quote(self, error: BaseException, path: KeyPath) -> str:
        """A validator's own words, unless they could repeat a secret."""
        if self.trace.is_secret(path):
            return f"the value from ${{…}} was refused with {type(error).__name__}; correct it where it is set"
        if isinstance(error, (ValueError, TypeError)) and error.args and isinstance(error.args[0], str):
            return shorten(" ".join(error.args[0].split()))
        return summary_of(error)

    def _describe(self, path: KeyPath) -> str:
        if self.trace.is_secret(path):
            return "a value from ${…}"
        value = self._find(path)
        scalar = isinstance(value, (str, int, float))
        return f"{kind_of(value)}, {shorten(repr(value), 80)}" if scalar else kind_of(value)

    def _find(self, path: KeyPath) -> Any:
        value: Any = self.root
        for key in path:
            value = value[key]
        return value

    def _has(self, path: KeyPath, key: str | int | None) -> bool:
        value = self._find(path)
        return isinstance(value, Mapping) and key in value


def _key_of(failure: BaseException, whole: BaseException) -> str | int | None:
    """Where in ``whole`` it failed: the key in the config, which is the field's alias."""
    for note in getattr(failure, "__notes__", ()):
        if isinstance(note, IterableValidationNote):
            return note.index
        if isinstance(note, AttributeValidationNote) and isinstance(whole, ClassValidationError):
            return _field_names_by_attribute(whole.cl).get(note.name, note.name)
    return None


def _field_names_by_attribute(cl: Any) -> dict[str, str]:
    origin = getattr(cl, "__origin__", cl)
    return {field.name: field.alias or field.name for field in attrs.fields(origin)} if attrs.has(origin) else {}


def _field_names(cl: Any) -> list[str]:
    origin = getattr(cl, "__origin__", cl)
    if attrs.has(origin):
        return [field.alias or field.name for field in attrs.fields(origin) if field.init]
    return [*getattr(origin, "__dataclass_fields__", getattr(origin, "__annotations__", {}))]
