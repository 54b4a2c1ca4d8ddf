"""From annotations to nodes of the enforced schema subset, with what they demand beyond it (see ``members``)."""

from __future__ import annotations

import collections.abc
import types
import typing
from enum import Enum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from dsh_runtime.values.fields import MISSING, Field, fields_of, is_record
from dsh_runtime.values.literals import scalar_key
from dsh_runtime.values.members import published
from dsh_runtime.values.paths import Report
from dsh_runtime.values.subset import raise_violations

SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}
ARRAYS: Final = frozenset((list, tuple, collections.abc.Sequence))
OBJECTS: Final = frozenset((dict, collections.abc.Mapping))
_REMEDY = "use str, int, float, bool, None, Literal, Enum, list, tuple[T, ...], dict[str, T], a record class or Any"


def schema_of(annotation: Any) -> dict[str, Any]:
    """Give the schema of a record class (attrs, dataclass, TypedDict) or of another supported annotation.

    ``JsonSchemaError`` lists every field whose annotation the subset cannot express.
    """
    name = getattr(annotation, "__name__", str(annotation))
    describer = Describer(name)
    schema = describer.node(annotation, name)
    describer.finish()
    return published(schema, union_node)


def schema_of_fields(fields: list[Field], owner: str) -> dict[str, Any]:
    """Give the object schema whose properties are these fields."""
    describer = Describer(owner)
    schema = describer.record(fields, owner)
    describer.finish()
    return published(schema, union_node)


def unaliased(annotation: Any) -> Any:
    """Give what a ``NewType``, or an alias made by the ``type`` statement, stands for."""
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif hasattr(annotation, "__value__"):
            annotation = annotation.__value__
        else:
            return annotation


def bare(annotation: Any) -> Any:
    """Give what an annotation stands for, without what ``Annotated`` says about it."""
    annotation = unaliased(annotation)
    while get_origin(annotation) is Annotated:
        annotation = unaliased(get_args(annotation)[0])
    return annotation


def is_union(annotation: Any) -> bool:
    """Tell whether an annotation is ``A | B``, however it is written."""
    return get_origin(annotation) in (Union, types.UnionType)


class Describer:
    """Describes annotations as nodes and notes what it cannot describe, each place named ``Class.field``."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._report = Report("", bare_members=True)
        self._open: list[type] = []

    def finish(self) -> None:
        """Raise ``JsonSchemaError`` when anything could not be described."""
        if self._report.violations:
            raise_violations(f"{self._owner} has no schema in the enforced subset", self._report)

    def node(self, annotation: Any, place: str) -> dict[str, Any]:
        """Describe one annotation."""
        annotation = unaliased(annotation)
        origin = get_origin(annotation)
        if origin is Annotated:
            return self._annotated(annotation, place)
        if is_union(annotation):
            return union_node([self.node(member, place) for member in get_args(annotation)])
        if origin is Literal:
            return self._literals(get_args(annotation), place)
        return self._plain(annotation, origin or annotation, place)

    def _plain(self, annotation: Any, base: Any, place: str) -> dict[str, Any]:
        if base is Any or base is object:
            return {}
        if base is None or base in SCALARS:
            return {"type": SCALARS.get(base, "null")}
        if base in ARRAYS:
            return self._array(annotation, base, place)
        if base in OBJECTS:
            return self._mapping(annotation, place)
        if is_record(annotation):
            return self._record(annotation, place)
        if isinstance(annotation, type) and issubclass(annotation, Enum):
            return self._literals(tuple(annotation), place)
        return self._refuse(place, f"is annotated {_show(annotation)}, which no schema of the subset says; {_REMEDY}")

    def _refuse(self, place: str, message: str) -> dict[str, Any]:
        self._report.add((None, place), message)
        return {}

    def _annotated(self, annotation: Any, place: str) -> dict[str, Any]:
        inner, *extras = get_args(annotation)
        node = self.node(inner, place)
        said = next((extra for extra in extras if isinstance(extra, str)), None)
        return {**node, "description": said} if said is not None else node

    def _literals(self, values: tuple[Any, ...], place: str) -> dict[str, Any]:
        plain = [value.value if isinstance(value, Enum) else value for value in values]
        if any(type(value) not in SCALARS for value in plain):
            return self._refuse(place, "has literals that are no JSON scalars; use str, int, float, bool or None")
        return union_node([_literal_node(value) for value in plain])

    def _array(self, annotation: Any, base: Any, place: str) -> dict[str, Any]:
        items = get_args(annotation)
        if not items:
            return {"type": "array"}
        if base is tuple and (len(items) != 2 or items[1] is not Ellipsis):
            shown = _show(annotation)
            return self._refuse(place, f"is annotated {shown}, a tuple of fixed length; use tuple[T, ...] or a class")
        node = self.node(items[0], place)
        return {"type": "array", "items": node} if node else {"type": "array"}

    def _mapping(self, annotation: Any, place: str) -> dict[str, Any]:
        keys, *values = get_args(annotation) or (str,)
        if keys is not str:
            return self._refuse(place, f"is annotated {_show(annotation)}, and JSON keys are strings; use dict[str, T]")
        node = self.node(values[0], place) if values else {}
        return {"type": "object", "additionalProperties": node} if node else {"type": "object"}

    def _record(self, record: type, place: str) -> dict[str, Any]:
        if record in self._open:
            return self._refuse(place, f"refers to {record.__name__} inside itself; use Any for the inner one")
        self._open.append(record)
        try:
            return self.record(fields_of(record), record.__name__)
        except NameError as error:
            return self._refuse(place, f"has an annotation that does not resolve ({error}); import it in the module")
        finally:
            self._open.pop()

    def record(self, fields: list[Field], owner: str) -> dict[str, Any]:
        """Describe fields as an open object."""
        properties = {item.name: self._property(item, f"{owner}.{item.name}") for item in fields}
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        required = [item.name for item in fields if item.required]
        return {**schema, "required": required} if required else schema

    def _property(self, item: Field, place: str) -> dict[str, Any]:
        if item.annotation is MISSING:
            return self._refuse(place, f"has no annotation, so nothing says what it takes; {_REMEDY}")
        node = self.node(item.annotation, place)
        if item.description and "description" not in node:
            node = {**node, "description": item.description}
        return node if item.default is MISSING else {**node, "default": item.default}


def union_node(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Combine the nodes of a union: scalars of one type become one node, what remains becomes ``oneOf``."""
    members: list[dict[str, Any]] = []
    for node in nodes:
        for member in node.get("oneOf", [node]):
            _merge(members, {key: value for key, value in member.items() if key not in ("title", "default")})
    if any("type" not in member for member in members):
        return {}
    return members[0] if len(members) == 1 else {"oneOf": members}


def _merge(members: list[dict[str, Any]], node: dict[str, Any]) -> None:
    for index, member in enumerate(members):
        if member == node:
            return
        if _overlap(member, node):
            members[index] = _widen(member, node)
            return
    members.append(node)


def _overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    kinds = {one.get("type"), other.get("type")}
    return kinds == {"integer", "number"} or (len(kinds) == 1 and not kinds & {"object", "array", None})


def _widen(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    node: dict[str, Any] = {"type": "number" if one["type"] != other["type"] else one["type"]}
    literals = [_values(one), _values(other)]
    if None not in literals:
        values = {scalar_key(value): value for some in literals for value in some or ()}
        node["enum"] = list(values.values())
    said = one.get("description") or other.get("description")
    return {**node, "description": said} if said else node


def _values(node: dict[str, Any]) -> list[Any] | None:
    return [node["const"]] if "const" in node else node.get("enum")


def _literal_node(value: Any) -> dict[str, Any]:
    kind = SCALARS[type(value)]
    return {"type": kind} if kind == "null" else {"type": kind, "const": value}


def _show(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
