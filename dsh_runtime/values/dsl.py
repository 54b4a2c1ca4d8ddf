"""The author's DSL: parameter and value specs, compiled to the enforced subset.

A spec is checked in two steps: first the DSL's own rules, with paths into the spec; then, when those hold, the compiled
schema against the subset, with paths into the schema.
"""

from __future__ import annotations

from typing import Any, Final

from dsh_hookspecs import Violation

from dsh_runtime.values.frozen import FrozenDict, FrozenList, freeze_dict_shell, thaw
from dsh_runtime.values.paths import Link, Report, kind_of
from dsh_runtime.values.snapshot import look_through
from dsh_runtime.values.subset import ANNOTATIONS, SCALAR_TYPES, check_schema, raise_violations
from dsh_runtime.values.survey import Offence
from dsh_runtime.values.walk import explain

#: The keys of each kind of node, beside ``type`` and the annotations.
NODE_KEYS: Final = {
    **dict.fromkeys(SCALAR_TYPES, frozenset(("enum", "const"))),
    "array": frozenset(("items",)),
    "object": frozenset(("properties", "additionalProperties")),
    "json": frozenset[str](),
}
_ONE_OF_KEYS: Final = frozenset(("oneOf",))
_SPEC_TYPES: Final = ("string", "number", "integer", "boolean", "null", "array", "object", "json")


def parameter_spec_to_json_schema(spec: object, path: str = "parameters") -> dict[str, Any]:
    """Compile a map of names to nodes, an implicitly open object, or raise ``JsonSchemaError`` with every violation."""
    compiler = _Compiler(path)
    schema: dict[str, Any] = {"type": "object"}
    compiler.parameters(spec, schema)
    return compiler.finish(schema, "schema")


def value_spec_to_json_schema(spec: object, path: str = "schema") -> dict[str, Any]:
    """Compile one node, or raise ``JsonSchemaError`` with every violation."""
    compiler = _Compiler(path)
    schema: dict[str, Any] = {}
    compiler.value(spec, schema)
    return compiler.finish(schema, path)


def validate_args(spec: object, args: object) -> tuple[Violation, ...]:
    """List every violation of arguments against a parameter spec; the root is ``arguments``, members go bare."""
    schema = parameter_spec_to_json_schema(spec)
    return explain(schema, args, Report("arguments", bare_members=True))


class _Compiler:
    """Compiles nodes one at a time; each leaves its children for later, so depth costs no recursion."""

    def __init__(self, path: str) -> None:
        self._report = Report(path)
        self._pending: list[tuple[Any, dict[str, Any], Link]] = []

    def parameters(self, spec: object, schema: dict[str, Any]) -> None:
        tree = look_through(spec).tree
        if type(tree) is not FrozenDict:
            self._report.add(None, f"must map parameter names to nodes, not be {kind_of(tree)}")
            return
        self._properties(tree, schema, None)
        self._run()

    def value(self, spec: object, schema: dict[str, Any]) -> None:
        self._pending.append((look_through(spec).tree, schema, None))
        self._run()

    def finish(self, schema: dict[str, Any], path: str) -> dict[str, Any]:
        report = self._report if self._report.violations else check_schema(schema, path)
        if report.violations:
            raise_violations("tool schema spec is invalid", report)
        return schema

    def _run(self) -> None:
        while self._pending:
            self._node(*self._pending.pop())

    def _node(self, spec: Any, schema: dict[str, Any], link: Link) -> None:
        if type(spec) is not FrozenDict:
            self._report.add(link, f"must be a node, an object with a type or oneOf, not {kind_of(spec)}")
        elif "oneOf" in spec:
            self._known_keys(spec, _ONE_OF_KEYS, link)
            self._one_of(spec, schema, link)
        elif type(spec.get("type")) is not str or spec["type"] not in NODE_KEYS:
            self._report.add((link, "type"), f"must be one of {', '.join(_SPEC_TYPES)}")
        else:
            self._known_keys(spec, NODE_KEYS[spec["type"]], link)
            self._typed(spec, schema, link)
        if type(spec) is FrozenDict:
            schema.update({key: _mutable(spec[key]) for key in spec if key in ANNOTATIONS})

    def _known_keys(self, spec: FrozenDict, keys: frozenset[str], link: Link) -> None:
        for key in spec:
            if key == "required":
                self._report.add((link, key), "stands only on a property, and only as true; drop it or write true")
            elif key not in keys and key != "type" and key not in ANNOTATIONS:
                self._report.add((link, key), f"is not a key of {_name(spec)}; remove it")

    def _one_of(self, spec: FrozenDict, schema: dict[str, Any], link: Link) -> None:
        if "type" in spec:
            self._report.add(link, 'has both "type" and "oneOf"; move the type into the branches')
            return
        branches = spec["oneOf"]
        if type(branches) is not FrozenList:
            self._report.add((link, "oneOf"), f"must be an array of nodes, not {kind_of(branches)}")
            return
        schema["oneOf"] = [{} for _ in branches]
        children = zip(branches, schema["oneOf"], strict=True)
        self._later([(branch, out, ((link, "oneOf"), index)) for index, (branch, out) in enumerate(children)])

    def _typed(self, spec: FrozenDict, schema: dict[str, Any], link: Link) -> None:
        kind = spec["type"]
        if kind == "json":
            return
        schema["type"] = kind
        if kind == "object":
            self._object(spec, schema, link)
        elif kind == "array" and "items" in spec:
            schema["items"] = {}
            self._later([(spec["items"], schema["items"], (link, "items"))])
        else:
            schema.update({key: _mutable(spec[key]) for key in ("enum", "const") if key in spec})

    def _object(self, spec: FrozenDict, schema: dict[str, Any], link: Link) -> None:
        openness = spec.get("additionalProperties")
        if type(openness) is not bool:
            message = "must be stated on an object node as true (open) or false (closed)"
            self._report.add((link, "additionalProperties"), message)
        schema["additionalProperties"] = openness
        if "properties" not in spec:
            return
        if type(spec["properties"]) is FrozenDict:
            self._properties(spec["properties"], schema, (link, "properties"))
        else:
            kind = kind_of(spec["properties"])
            self._report.add((link, "properties"), f"must map property names to nodes, not be {kind}")

    def _properties(self, specs: FrozenDict, schema: dict[str, Any], link: Link) -> None:
        schema["properties"] = {name: {} for name in specs}
        required = [name for name, spec in specs.items() if type(spec) is FrozenDict and spec.get("required") is True]
        if required:
            schema["required"] = required
        children: list[tuple[Any, dict[str, Any], Link]] = []
        for name, spec in specs.items():
            if name in required:
                spec = freeze_dict_shell({key: spec[key] for key in spec if key != "required"})
            children.append((spec, schema["properties"][name], (link, name)))
        self._later(children)

    def _later(self, children: list[tuple[Any, dict[str, Any], Link]]) -> None:
        self._pending.extend(reversed(children))


def _mutable(value: Any) -> Any:
    """Copy a literal or annotation; an offence in it stays, for the check of the compiled schema to refuse."""
    return value if type(value) is Offence else thaw(value)


def _name(spec: FrozenDict) -> str:
    return "a oneOf node" if "oneOf" in spec else f"a node of type {spec['type']}"
