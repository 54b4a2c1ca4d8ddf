"""The keywords that match patterns, with a limit on time: a server may give a pattern that never ends.

Python's ``re`` has no limit, and holds the whole process meanwhile. ``patternProperties`` beside the keywords that look
at it from outside is judged here too, so that no other pattern is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import regex
from jsonschema import ValidationError
from jsonschema.validators import extend

#: Seconds that one match may take.
_SECONDS: Final = 0.05


def limited(validator: Any) -> Any:
    """The validator class with keywords that end in time."""
    return _limited(validator)


@cache
def _limited(validator: Any) -> Any:
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
    }
    known = {key: fn for key, fn in keywords.items() if key in validator.VALIDATORS}
    return extend(validator, known)  # type: ignore[no-untyped-call]


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; what takes too long, or is no pattern, is an error of validation."""
    try:
        return _compiled(pattern).search(text, timeout=_SECONDS, concurrent=False) is not None
    except TimeoutError:
        raise ValidationError(f"the pattern {pattern!r:.100} takes too long") from None
    except regex.error as error:
        raise ValidationError(f"the pattern {pattern!r:.100} cannot be used: {error}") from None


def _compiled(pattern: str) -> Any:
    return regex.compile(pattern, cache_pattern=True)


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{instance!r:.100} does not match {pattern!r:.100}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for pattern, below in patterns.items():
        for key, value in instance.items():
            if matches(pattern, key):
                yield from validator.descend(value, below, path=key, schema_path=pattern)


def _additional_properties(validator: Any, below: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    declared = schema.get("properties", {})
    patterns: Mapping[str, Any] = schema.get("patternProperties", {})
    for key, value in instance.items():
        if key in declared or any(matches(pattern, key) for pattern in patterns):
            continue
        if below is False:
            yield ValidationError(f"the property {key!r:.100} is not allowed")
        elif isinstance(below, dict):
            yield from validator.descend(value, below, path=key)
