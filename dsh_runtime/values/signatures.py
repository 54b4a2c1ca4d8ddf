"""Reads a plain annotated function as a tool: its parameters as an object schema, its docstring as descriptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dsh_hookspecs import JsonSchemaError, Violation

from dsh_runtime.values.annotations import schema_of_fields
from dsh_runtime.values.docstrings import Docstring, parse_docstring
from dsh_runtime.values.fields import MISSING, Field, json_default, resolved_hints
from dsh_runtime.values.typed import structure_fields

#: The parameter that takes the tool's context, and never an argument of the model.
CONTEXT_PARAMETER = "exec"

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionSignature(NamedTuple):
    """What a function says about itself."""

    schema: dict[str, Any]
    description: str
    descriptions: dict[str, str]


def signature_of(function: Callable[..., Any]) -> FunctionSignature:
    """Give the parameter schema, the docstring's summary, and the description of each parameter."""
    docstring = parse_docstring(inspect.getdoc(function))
    schema = schema_of_fields(_fields(function, docstring), _name(function))
    properties = schema["properties"].items()
    descriptions = {name: node["description"] for name, node in properties if "description" in node}
    return FunctionSignature(schema, docstring.summary, descriptions)


def structure_call(function: Callable[..., Any]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Give a function that makes checked arguments into the keyword arguments of ``function``."""
    return structure_fields(_fields(function, Docstring()))


def _fields(function: Callable[..., Any], docstring: Docstring) -> list[Field]:
    hints = _hints(function)
    fields = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == CONTEXT_PARAMETER:
            continue
        if parameter.kind not in _BY_NAME:
            rule = "cannot be passed by name, as arguments are; make it an ordinary parameter"
            raise _refusal(function, parameter.name, rule)
        fields.append(_field(parameter, hints, docstring))
    return fields


def _field(parameter: inspect.Parameter, hints: dict[str, Any], docstring: Docstring) -> Field:
    required = parameter.default is inspect.Parameter.empty
    default = MISSING if required else json_default(parameter.default)
    said = docstring.parameters.get(parameter.name)
    return Field(parameter.name, hints.get(parameter.name, MISSING), required, default, said)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = inspect.unwrap(function)
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return resolved_hints(target)
    except NameError as error:
        rule = f"is annotated with a name that does not resolve ({error}); import it in the function's module"
        raise _refusal(function, str(error.name), rule) from error


def _refusal(function: Callable[..., Any], parameter: str, rule: str) -> JsonSchemaError:
    violation = Violation(f"{_name(function)}.{parameter}", rule)
    return JsonSchemaError(f"{_name(function)} has no schema in the enforced subset: {violation}", [violation])


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def returned_by(function: Callable[..., Any]) -> Any:
    """Give the annotation of what ``function`` returns; one is needed, since an output is always declared."""
    annotation = _hints(function).get("return", MISSING)
    if annotation is MISSING:
        raise _refusal(function, "return", "has no annotation, and a tool declares its output; annotate it")
    return annotation
