"""Values against the schemas of a server, whatever their dialect.

A schema is hostile input: its size is bounded, a ``$ref`` stays inside the document, patterns have a limit on time, and
what cannot be judged is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing import Registry

from dsh_plugin_mcp_client._patterns import limited

_SHOWN: Final = 5
#: Keywords that would match ``patternProperties`` without a limit on time.
_UNLIMITED: Final = "unevaluatedProperties"
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaProblemError(Exception):
    """A schema cannot be enforced."""


class Checker:
    """Checks values against one schema. Raises :class:`SchemaProblemError` for a schema that it cannot enforce."""

    def __init__(self, schema: Any) -> None:
        if not isinstance(schema, dict):
            raise SchemaProblemError("is no object")
        try:
            for problem in _unenforceable(schema):
                raise SchemaProblemError(problem)
            dialect = validator_for(schema, default=Draft202012Validator)
            dialect.check_schema(schema)
            # A registry that retrieves nothing: no reference leaves the document.
            self._validator = limited(dialect)(schema, registry=Registry())
        except SchemaError as error:
            raise SchemaProblemError(f"is invalid at {error.json_path}: {error.message:.200}") from None
        except RecursionError:
            raise SchemaProblemError("is nested too deep") from None

    def problems(self, value: Any) -> list[str]:
        """What is wrong with a value, the first few; nothing if it holds."""
        try:
            return [_told(error) for error in islice(self._validator.iter_errors(value), _SHOWN)]
        except ValidationError as error:
            return [error.message]
        except RecursionError:
            return ["the schema refers to itself without end, or the value is nested too deep"]
        except Exception as error:
            # A reference that leads nowhere, an arithmetic error on a huge number: what cannot be judged does not hold.
            return [f"the schema cannot be applied ({type(error).__name__}: {error!s:.200})"]


def _told(error: ValidationError) -> str:
    return f"{error.json_path}: {error.message:.200}"


def _unenforceable(schema: dict[str, Any]) -> Iterator[str]:
    """What in a schema is refused, without recursion."""
    left: list[Any] = [schema]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left.extend(node)
        elif isinstance(node, dict):
            for key in _REFERENCES:
                target = node.get(key)
                if isinstance(target, str) and not target.startswith("#"):
                    yield f"has a {key} that leaves the document ({target!r:.100})"
            if _UNLIMITED in node and "patternProperties" in node:
                yield f"has 'patternProperties' beside {_UNLIMITED!r}, which cannot be matched in bounded time"
            left.extend(node.values())
