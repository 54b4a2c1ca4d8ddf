"""Schemas as annotations.

An object that declares properties becomes a TypedDict with a name, declared in front of what uses it. What a type of
Python cannot say, is too deep or too long, is said less exactly, never wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dsh_runtime.code_mode.sdk.words import Names, comment, type_name
from dsh_runtime.tools.names import is_plain, quoted

#: What every generated text imports or finds built in, and its annotations are made of.
ATOMS: Final = frozenset({"Any", "Literal", "NotRequired", "bool", "dict", "float", "int", "list", "str"})
_SCALARS: Final = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}
_MAX_DEPTH: Final = 12
_MAX_MEMBERS: Final = 60
_MAX_LITERAL: Final = 200


def annotation(schema: Any) -> str:
    """The type of a schema's values, in one expression: objects are not described any further."""
    return _Writer(None).type_of(schema, "", 0)


class TypedDicts:
    """Writes annotations with the TypedDicts that they need. ``names`` are those of the whole text."""

    def __init__(self, names: Names) -> None:
        self._writer = _Writer(names)

    def annotation(self, schema: Any, name: str) -> str:
        """The type of a schema's values; if that needs a TypedDict, it gets a name like ``name``."""
        return self._writer.type_of(schema, name, 0)

    @property
    def declarations(self) -> Sequence[str]:
        """The TypedDicts, each behind those that it uses."""
        return self._writer.declarations


class _Writer:
    def __init__(self, names: Names | None) -> None:
        self._names = names
        self._own: set[str] = set()
        self.declarations: list[str] = []

    def type_of(self, schema: Any, name: str, depth: int) -> str:
        if not isinstance(schema, Mapping):
            return "Any"
        if "oneOf" in schema:
            return self._union(schema["oneOf"], name, depth + 1)
        kind = schema.get("type")
        if kind == "array":
            inner = self.type_of(schema.get("items"), f"{name}Item", depth + 1) if depth < _MAX_DEPTH else "Any"
            return f"list[{inner}]"
        if kind == "object":
            return self._object(schema, name, depth + 1)
        if not isinstance(kind, str) or kind not in _SCALARS:
            return "Any"
        return _literal(schema, kind) or _SCALARS[kind]

    def _union(self, branches: Any, name: str, depth: int) -> str:
        if not isinstance(branches, list | tuple) or not 0 < len(branches) <= _MAX_MEMBERS or depth > _MAX_DEPTH:
            return "Any"
        return " | ".join(dict.fromkeys(self.type_of(branch, name, depth) for branch in branches))

    def _object(self, schema: Mapping[str, Any], name: str, depth: int) -> str:
        properties = schema.get("properties")
        if self._names is None or not isinstance(properties, Mapping) or not properties or depth > _MAX_DEPTH:
            return "dict[str, Any]"
        required = schema.get("required") or ()
        members = []
        for key, inner in properties.items():
            kind = self.type_of(inner, type_name(name, key), depth)
            about = inner.get("description") if isinstance(inner, Mapping) else None
            members.append((key, kind if key in required else f"NotRequired[{kind}]", comment(about)))
        own = self._names.new(name)
        self.declarations.append(self._declared(own, members))
        self._own.add(own)
        return own

    def _declared(self, name: str, members: Sequence[tuple[str, str, str]]) -> str:
        """As a class where every key can be written as one, and hides nothing that the annotations need."""
        if all(is_plain(key) and key not in ATOMS and key not in self._own for key, _, _ in members):
            lines = (f"    {key}: {kind}{about}\n" for key, kind, about in members)
            return f"class {name}(TypedDict):\n" + "".join(lines)
        lines = (f"    {quoted(key)}: {kind},{about}\n" for key, kind, about in members)
        return f'{name} = TypedDict("{name}", {{\n' + "".join(lines) + "})\n"


def _literal(schema: Mapping[str, Any], kind: str) -> str | None:
    """The values that a scalar is confined to, where a type can name them."""
    if "const" in schema:
        values: Any = [schema["const"]]
    elif "enum" in schema:
        values = schema["enum"]
    else:
        return None
    if kind == "null" or not isinstance(values, list | tuple) or not 0 < len(values) <= _MAX_MEMBERS:
        return None
    written = list(_written(values, kind))
    return f"Literal[{', '.join(dict.fromkeys(written))}]" if len(written) == len(values) else None


def _written(values: Sequence[Any], kind: str) -> Iterator[str]:
    """The values as literals, as far as they can be."""
    for value in values:
        if kind == "string" and isinstance(value, str) and len(value) <= _MAX_LITERAL:
            yield quoted(str(value))
        elif kind == "boolean" and isinstance(value, bool):
            yield str(value)
        elif kind == "integer" and (type(value) is int or (type(value) is float and value.is_integer())):
            yield str(int(value))
