"""One tool as declarations: its types, and its signature with a docstring."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen
from dsh_hookspecs import JsonSchemaError

from dsh_runtime.code_mode.sdk.types import ATOMS, TypedDicts
from dsh_runtime.code_mode.sdk.words import Names, docstring, type_name
from dsh_runtime.tools.definition import ToolDefinition
from dsh_runtime.values import assert_object_json_schema

#: A tool whose declarations are longer is declared without its types.
_MAX_TOOL: Final = 20_000
_MAX_SCHEMA: Final = 1_200
_ANY_ARGUMENTS: Final = "dict[str, Any]"


@frozen
class Signature:
    """What a call of a tool takes and gives. ``types`` have to stand in front of it."""

    arguments: str
    result: str
    optional: bool = False
    schema: str = ""
    types: tuple[str, ...] = field(default=())

    def method(self, name: str, description: str, indent: str) -> str:
        """The tool as a method."""
        default = " = {}" if self.optional else ""
        text = f"{description}\n\n{self.schema}" if self.schema else description
        head = f"{indent}async def {name}(self, args: {self.arguments}{default}, /) -> {self.result}:\n"
        return f"{head}{docstring(text, indent + '    ')}{indent}    ...\n"


def signature_of(tool: ToolDefinition, names: Names, hidden: frozenset[str]) -> Signature:
    """The signature of a tool. ``hidden`` are the names that mean something else where it is going to stand."""
    base = type_name(tool.name)
    types = TypedDicts(names)
    own = _is_own(tool.parameters)
    arguments = types.annotation(tool.parameters, f"{base}Args") if own else _ANY_ARGUMENTS
    result = types.annotation(tool.output.schema, f"{base}Result")
    if sum(map(len, types.declarations)) + len(result) > _MAX_TOOL:
        types, own, arguments, result = TypedDicts(names), False, _ANY_ARGUMENTS, "Any"
    aliases: list[str] = []
    return Signature(
        _alias(arguments, f"{base}Args", names, hidden, aliases),
        _alias(result, f"{base}Result", names, hidden, aliases),
        optional=own and not tool.parameters.get("required"),
        schema="" if own else _foreign(tool.parameters),
        types=(*types.declarations, *aliases),
    )


def _alias(annotation: str, wanted: str, names: Names, hidden: frozenset[str], aliases: list[str]) -> str:
    """The annotation, or another name for it where a word in it is hidden."""
    if hidden.isdisjoint(_atoms_of(annotation)):
        return annotation
    alias = names.new(wanted)
    aliases.append(f"{alias}: TypeAlias = {annotation}\n")
    return alias


def _atoms_of(annotation: str) -> frozenset[str]:
    return ATOMS & set(re.findall(r"[A-Za-z]+", annotation))


def _is_own(parameters: Any) -> bool:
    """Whether parameters are a schema of the subset, whose every word is known."""
    try:
        assert_object_json_schema(parameters)
    except (JsonSchemaError, RecursionError):
        return False
    return True


def _foreign(parameters: Any) -> str:
    """A schema in another dialect, as it is, if it is short enough to be read."""
    try:
        text = json.dumps(parameters, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""
    is_empty = not isinstance(parameters, Mapping) or not parameters
    return "" if is_empty or len(text) > _MAX_SCHEMA else f"Arguments, as JSON Schema: {text}"
