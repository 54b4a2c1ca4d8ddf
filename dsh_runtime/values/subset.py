"""The enforced subset of JSON Schema: which schemas are inside it, and every reason why one is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from dsh_hookspecs import JsonSchemaError

from dsh_runtime.values.frozen import FrozenDict, FrozenList
from dsh_runtime.values.literals import scalar_key
from dsh_runtime.values.paths import Link, Report, kind_of
from dsh_runtime.values.snapshot import look_through
from dsh_runtime.values.survey import Offence, Survey

SCALAR_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "null"))
TYPES: Final = ("object", "array", "string", "number", "integer", "boolean", "null")
ANNOTATIONS: Final = frozenset(("description", "title", "default", "examples"))
#: Each constraint with the types of the nodes on which it may stand.
CONSTRAINTS: Final = {
    "properties": frozenset(("object",)),
    "required": frozenset(("object",)),
    "additionalProperties": frozenset(("object",)),
    "items": frozenset(("array",)),
    "enum": SCALAR_TYPES,
    "const": SCALAR_TYPES,
}
KEYWORDS: Final = frozenset((*CONSTRAINTS, *ANNOTATIONS, "type", "oneOf"))

_REPEATS = 10_000  # visits to nodes that were seen before: shared nodes must not multiply without bound


def assert_supported_json_schema(schema: object, path: str = "schema") -> None:
    """Raise ``JsonSchemaError`` with every place at which ``schema`` leaves the enforced subset."""
    _raise_any(check_schema(schema, path))


def assert_object_json_schema(schema: object, path: str = "schema") -> None:
    """Raise ``JsonSchemaError`` unless ``schema`` is supported and its root is of type object."""
    report = check_schema(schema, path)
    if isinstance(schema, dict) and schema.get("type") != "object":
        report.add(None, 'must be an object schema at its root; state "type": "object"')
    _raise_any(report)


def check_schema(schema: object, path: str) -> Report:
    """List every violation of the subset, parents before children and in the schema's own order."""
    report = Report(path)
    found = look_through(schema)
    checker = _Checker(report, found)
    pending: list[tuple[Any, Link]] = [(found.tree, None)]
    seen: set[int] = set()
    repeats = 0
    while pending:
        node, link = pending.pop()
        if id(node) in seen:
            repeats += 1
        if repeats <= _REPEATS:
            seen.add(id(node))
            pending.extend(reversed(list(checker.check(node, link))))
    return report


def _raise_any(report: Report) -> None:
    if report.violations:
        raise_violations("JSON Schema is outside the enforced subset", report)


def raise_violations(subject: str, report: Report) -> None:
    """Raise ``JsonSchemaError`` with all violations, the first few of them in the message."""
    shown = "; ".join(str(violation) for violation in report.violations[:5])
    more = f"; and {len(report.violations) - 5} more" if len(report.violations) > 5 else ""
    raise JsonSchemaError(f"{subject}: {shown}{more}", report.violations)


class _Checker:
    """Checks one node at a time and names the children that remain to be checked."""

    def __init__(self, report: Report, found: Survey) -> None:
        self._report = report
        self._found = found

    def check(self, node: Any, link: Link) -> Iterator[tuple[Any, Link]]:
        if type(node) is not FrozenDict:
            self._report.add(link, _not_a(node, "a schema must be an object"))
            return
        self._bad_keys(node, link)
        self._unknown_keywords(node, link)
        self._annotations(node, link)
        if "oneOf" in node:
            yield from self._one_of(node, link)
        elif "type" in node:
            yield from self._typed(node, link)
        else:
            self._misplaced(node, link, None)

    def _bad_keys(self, container: Any, link: Link) -> None:
        if id(container) in self._found.bad_keys:
            self._report.add(link, self._found.bad_keys[id(container)][1])

    def _unknown_keywords(self, node: FrozenDict, link: Link) -> None:
        for keyword in node:
            if keyword not in KEYWORDS:
                self._report.add((link, keyword), "is not a supported keyword, so nothing would enforce it; remove it")

    def _annotations(self, node: FrozenDict, link: Link) -> None:
        for keyword in ("description", "title"):
            if keyword in node and type(node[keyword]) is not str:
                self._report.add((link, keyword), _not_a(node[keyword], "must be a string"))
        for keyword in ("default", "examples"):
            if keyword in node and self._lossy(node[keyword]):
                self._report.add((link, keyword), f"must be lossless JSON, but it {self._why(node[keyword])}")

    def _lossy(self, value: Any) -> bool:
        return type(value) is Offence or id(value) in self._found.tainted

    def _why(self, value: Any) -> str:
        if type(value) is Offence:
            return value.message
        place, message = self._found.tainted[id(value)]
        return f"holds {self._report.place(place)}, which {message}"

    def _one_of(self, node: FrozenDict, link: Link) -> Iterator[tuple[Any, Link]]:
        if "type" in node:
            self._report.add(link, 'has both "type" and "oneOf"; move the type into the branches')
            return
        branches = node["oneOf"]
        if type(branches) is not FrozenList or len(branches) < 2:
            self._report.add((link, "oneOf"), "must be an array of at least two schemas")
        else:
            yield from (((branch, ((link, "oneOf"), index))) for index, branch in enumerate(branches))
        self._misplaced(node, link, None)

    def _typed(self, node: FrozenDict, link: Link) -> Iterator[tuple[Any, Link]]:
        kind = node["type"]
        if type(kind) is not str or kind not in TYPES:
            self._report.add((link, "type"), f"must be one of {', '.join(TYPES)}")
            return
        self._misplaced(node, link, kind)
        if kind == "object":
            yield from self._object(node, link)
        elif kind == "array":
            if "items" in node:
                yield node["items"], (link, "items")
        else:
            self._literals(node, link, kind)

    def _misplaced(self, node: FrozenDict, link: Link, kind: str | None) -> None:
        place = "beside oneOf" if "oneOf" in node else f"on type {kind}" if kind else "without a type"
        for keyword, kinds in CONSTRAINTS.items():
            if keyword in node and kind not in kinds:
                self._report.add((link, keyword), f"has no meaning {place}; remove it or state its type")

    def _object(self, node: FrozenDict, link: Link) -> Iterator[tuple[Any, Link]]:
        properties = node.get("properties", {})
        if not isinstance(properties, dict):
            self._report.add((link, "properties"), _not_a(properties, "must be an object of schemas"))
            properties = {}
        self._bad_keys(properties, (link, "properties"))
        yield from ((child, ((link, "properties"), name)) for name, child in properties.items())
        if "required" in node:
            self._required(node["required"], properties, (link, "required"))
        if "additionalProperties" in node and type(node["additionalProperties"]) is not bool:
            message = _not_a(node["additionalProperties"], "must be true or false")
            self._report.add((link, "additionalProperties"), message)

    def _required(self, names: Any, properties: dict[str, Any], link: Link) -> None:
        if type(names) is not FrozenList or any(type(name) is not str for name in names):
            self._report.add(link, "must be an array of property names")
            return
        for name in dict.fromkeys(names):
            if name not in properties:
                self._report.add(link, f'names "{name}", which "properties" does not declare; declare it')

    def _literals(self, node: FrozenDict, link: Link, kind: str) -> None:
        fits = LITERAL_TESTS[kind]
        enum = node.get("enum")
        enum_holds = isinstance(enum, list) and len(enum) > 0 and all(map(fits, enum))
        if "enum" in node and not enum_holds:
            self._report.add((link, "enum"), f"must be a non-empty array of values of type {kind}")
        if "const" not in node:
            return
        if not fits(node["const"]):
            self._report.add((link, "const"), _not_a(node["const"], f"must be a value of type {kind}"))
        elif isinstance(enum, list) and enum_holds and scalar_key(node["const"]) not in set(map(scalar_key, enum)):
            self._report.add((link, "const"), 'is not among the values of "enum"; add it there or drop one of the two')


def _is_integer(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


LITERAL_TESTS: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: type(value) is str,
    "number": lambda value: type(value) is int or type(value) is float,
    "integer": _is_integer,
    "boolean": lambda value: type(value) is bool,
    "null": lambda value: value is None,
}


def _not_a(value: Any, rule: str) -> str:
    return f"{rule}, but it {value.message}" if type(value) is Offence else f"{rule}, not {kind_of(value)}"
