"""Turns a small schema into one function that checks and freezes in a single pass.

The source is made of fixed pieces and numbers alone. Whatever a schema says (property names, literals) stands in a
table that the source reads by index; so equally shaped schemas share one source, which is compiled once.

The pass answers "fits, and here it is frozen", raises ``Mismatch`` for "does not fit", or ``Unusual`` for "ask the
thorough way". It takes exact built-in types only, copies a container before it looks inside, and gives ``room`` and
``memo`` to the parts that a schema leaves open (see ``snapshot.freeze``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NoReturn, TypeAlias

from dsh_runtime.values import snapshot
from dsh_runtime.values.frozen import FrozenDict, FrozenList, OpenDict
from dsh_runtime.values.literals import allowed_literals, scalar_key

#: ``check(value, room, memo)`` gives the frozen value.
Pass: TypeAlias = Callable[[Any, int, dict[int, Any]], Any]

MOST_NODES = 400  # a larger schema costs more to compile than its calls win back
MOST_DEPTH = 32
MOST_ARRAYS = 3  # nested arrays of containers, in which shared items would multiply the work
MOST_BRANCHES = 16  # a larger oneOf is indexed by the walk, not tried branch by branch
_MANY = 64  # items, from which on an array is asked whether it repeats an item


class Mismatch(Exception):  # noqa: N818 - control flow
    """The value does not fit the schema, or is not JSON; the explaining walk says where."""


class TooLarge(Exception):  # noqa: N818 - control flow
    """The schema is too deep or too large for a generated pass."""


def generate(schema: Any) -> tuple[Pass, int]:
    """Make the pass for a frozen, supported schema, with the depth of its nodes; or raise ``TooLarge``."""
    depth = _measure(schema)
    writer = _Writer()
    entry = writer.function(schema)
    source = "\n".join(["def make(T):", *writer.lines, f" return {entry}"])
    return _factory(source)(writer.table), depth


def _measure(schema: Any) -> int:
    """Give the depth of a schema, or raise ``TooLarge``; a shared node counts each time, as it would be written."""
    pending: list[tuple[Any, int, int]] = [(schema, 1, 0)]
    nodes = deepest = 0
    while pending:
        node, depth, arrays = pending.pop()
        nodes += 1
        deepest = max(deepest, depth)
        branches = node.get("oneOf", ())
        if nodes > MOST_NODES or depth > MOST_DEPTH or arrays > MOST_ARRAYS or len(branches) > MOST_BRANCHES:
            raise TooLarge
        pending.extend((branch, depth + 1, arrays) for branch in branches)
        pending.extend((child, depth + 1, arrays) for child in node.get("properties", {}).values())
        if "items" in node:
            pending.append((node["items"], depth + 1, arrays + _is_container(node["items"])))
    return deepest


def _is_container(schema: Any) -> bool:
    return "oneOf" in schema or schema.get("type") in ("object", "array")


@lru_cache(maxsize=256)
def _factory(source: str) -> Callable[[list[Any]], Pass]:
    made: dict[str, Any] = {}
    exec(compile(source, "<schema pass>", "exec", dont_inherit=True), _tools(), made)
    factory: Callable[[list[Any]], Pass] = made["make"]
    return factory


class _Writer:
    """Collects the lines of all functions, and the table of what they refer to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.table: list[Any] = []
        self._functions = 0

    def constant(self, value: Any) -> str:
        """Put a value into the table; the name bound to it carries its index and nothing else."""
        index = len(self.table)
        self.table.append(value)
        self.lines.append(f" k{index}=T[{index}]")
        return f"k{index}"

    def function(self, schema: Any) -> str:
        """Write the function of one node and give its name."""
        if "oneOf" in schema:
            body = self._one_of(schema)
        elif schema.get("type") == "object":
            body = self._object(schema)
        elif schema.get("type") == "array":
            body = self._array(schema)
        else:
            lines, result = self.check(schema, "x", "r")
            body = [*lines, f"return {result}"]
        name = f"f{self._functions}"
        self._functions += 1
        self.lines.append(f" def {name}(x,r,m):")
        self.lines.extend([f"  {line}" for line in body])
        return name

    def check(self, schema: Any, item: str, room: str) -> tuple[list[str], str]:
        """Write the statements that check the variable ``item``; the result names where its frozen form is then."""
        kind = schema.get("type")
        if _is_container(schema):
            return [f"y={self.function(schema)}({item},{room},m)"], "y"
        if kind is None:
            return [f"y=freeze({item},{room},m)"], "y"
        allowed = allowed_literals(schema)
        lines = [line.replace("v", item) for line in _SCALARS[kind, allowed is not None]]
        return [line.replace("KEYS", self._keys(kind, allowed)) for line in lines] if allowed else lines, item

    def _keys(self, kind: str, allowed: Sequence[Any]) -> str:
        if kind in ("number", "integer"):
            return self.constant(frozenset(map(scalar_key, allowed)))
        return self.constant(frozenset(allowed))

    def _object(self, schema: Any) -> list[str]:
        properties = schema.get("properties", {})
        closed = schema.get("additionalProperties") is False
        if not properties and not closed:
            return [_IS_DICT, "return freeze(x,r,m)"]
        required = frozenset(schema.get("required", ()))
        body = [_IS_DICT, *_COPY_DICT, f"n={len(required)}"]
        for name, child in properties.items():
            body += self._property(self.constant(name), child, name in required)
        declared = "" if closed else self.constant(frozenset(properties))
        return [*body, "if n!=len(o):" + ("raise Mismatch" if closed else f"rest(o,{declared},r-1,m)"), *_CLOSE_DICT]

    def _property(self, name: str, schema: Any, required: bool) -> list[str]:
        lines, result = self.check(schema, "v", "r-1")
        if result == "y":
            lines = [*lines, f"o[{name}]=y"]
        if required and schema.get("type") in _NEVER_NULL:
            return [f"v=o.get({name})", *lines]  # a missing member reads as None, which the check refuses
        if required:
            return [f"v=o.get({name},M)", "if v is M:raise Mismatch", *lines]
        return [f"v=o.get({name},M)", "if v is not M:", " n+=1", *[f" {line}" for line in lines]]

    def _array(self, schema: Any) -> list[str]:
        items = schema.get("items", {})
        kind = items.get("type")
        if kind is None and "oneOf" not in items:
            return [_IS_LIST, "return freeze(x,r,m)"]
        if _is_container(items):
            return self._array_of_functions(items)
        lines, _ = self.check(items, "v", "r-1")
        loop = ["for v in o:", *[f" {line}" for line in lines]]
        if kind in _BULK and allowed_literals(items) is None:
            loop = [f"if len(o)<9 or {_BULK[kind]} or not plain(o):", *[f" {line}" for line in loop]]
        return [_IS_LIST, *_COPY_LIST, *loop, "return o"]

    def _array_of_functions(self, items: Any) -> list[str]:
        name = self.function(items)
        shared = f"if len(x)>{_MANY}:unshared(x)"
        return [_IS_LIST, shared, "q=r-1", "o=newlist(FL)", f"filllist(o,[{name}(v,q,m) for v in x])", "return o"]

    def _one_of(self, schema: Any) -> list[str]:
        branches = schema["oneOf"]
        groups: dict[tuple[int, ...], list[str]] = {}
        admitted = [_admits(branch) for branch in branches]
        for kind, test in _TESTS.items():
            takers = tuple(index for index, kinds in enumerate(admitted) if kind in kinds)
            groups.setdefault(takers, []).append(test)
        groups.pop((), None)
        body = ["t=type(x)"]
        names: dict[int, str] = {}
        for takers, tests in groups.items():
            body.append(f"if {' or '.join(tests)}:")
            body += [f" {line}" for line in self._takers(branches, takers, names)]
        return [*body, "no(x)"]

    def _takers(self, branches: Any, takers: tuple[int, ...], names: dict[int, str]) -> list[str]:
        """Write what happens to a value of a type that these branches take."""
        if len(takers) == 1 and not _is_container(branches[takers[0]]):
            lines, result = self.check(branches[takers[0]], "x", "r")
            return [*lines, f"return {result}"]
        for index in takers:
            if index not in names:  # written once: a nest of oneOf must not double the source at each level
                names[index] = self.function(branches[index])
        if len(takers) == 1:
            return [f"return {names[takers[0]]}(x,r,m)"]
        return [f"return one(({','.join(names[index] for index in takers)}),x,r,m)"]


def _admits(schema: Any) -> frozenset[str]:
    if "oneOf" in schema:
        return frozenset().union(*(_admits(branch) for branch in schema["oneOf"]))
    return _KINDS.get(schema.get("type"), frozenset(_TESTS))


_IS_DICT = "if type(x) is not dict and type(x) is not FD:no(x)"
_IS_LIST = "if type(x) is not list and type(x) is not tuple and type(x) is not FL:no(x)"
# Filled in while open, then frozen in place: assigning to a plain item costs a third of ``dict.__setitem__``.
_COPY_DICT = ("o=OD(x)", "for k in o:", " if type(k) is not str:raise Unusual")
_CLOSE_DICT = ("o.__class__=FD", "return o")
_COPY_LIST = ("o=newlist(FL)", "filllist(o,x)")

_INTEGER = (
    "if type(v) is int:",
    " if not LOW<v<HIGH:raise Unusual",
    "elif type(v) is not float or not v.is_integer():no(v)",
)
_NUMBER = ("if type(v) is int:", " if not LOW<v<HIGH:raise Unusual", "elif type(v) is not float or v-v!=0:no(v)")
_BOOLEAN = "if v is not True and v is not False:no(v)"
_NUMBER_KEY = "if key(v) not in KEYS:raise Mismatch"

#: The statements that check a scalar ``v``, by its type and whether literals limit it.
_SCALARS: dict[tuple[str, bool], tuple[str, ...]] = {
    ("string", False): ("if type(v) is not str or not v.isascii():text(v)",),
    ("string", True): ("if type(v) is not str or v not in KEYS:no(v)",),
    ("integer", False): _INTEGER,
    ("integer", True): (*_INTEGER, _NUMBER_KEY),
    ("number", False): _NUMBER,
    ("number", True): (*_NUMBER, _NUMBER_KEY),
    ("boolean", False): (_BOOLEAN,),
    ("boolean", True): (_BOOLEAN, "if v not in KEYS:raise Mismatch"),
    ("null", False): ("if v is not None:no(v)",),
    ("null", True): ("if v is not None:no(v)",),
}
_NEVER_NULL = frozenset(("string", "integer", "number", "boolean"))
#: What an array's first item must not be for a check of all items at C speed.
_BULK = {
    "string": "type(o[0]) is not str",
    "integer": "type(o[0]) is not int",
    "number": "type(o[0]) is not int and type(o[0]) is not float",
}
#: How the pass of a ``oneOf`` tells the Python types of JSON values apart, and which types a schema type takes.
_TESTS = {
    "str": "t is str",
    "int": "t is int",
    "float": "t is float",
    "bool": "t is bool",
    "none": "x is None",
    "dict": "t is dict or t is FD",
    "list": "t is list or t is tuple or t is FL",
}
_KINDS: dict[Any, frozenset[str]] = {
    "string": frozenset(("str",)),
    "number": frozenset(("int", "float")),
    "integer": frozenset(("int", "float")),
    "boolean": frozenset(("bool",)),
    "null": frozenset(("none",)),
    "object": frozenset(("dict",)),
    "array": frozenset(("list",)),
}


def _no(value: Any) -> NoReturn:
    """Refuse a value of a plain type; a subclass of one may yet fit by the plain value that it holds."""
    if value is None or type(value) in _PLAIN:
        raise Mismatch
    raise snapshot.Unusual


_PLAIN = frozenset((str, int, float, bool, dict, list, tuple, FrozenDict, FrozenList))


def _text(value: Any) -> None:
    """Take text beyond ASCII that has no lone surrogate."""
    if type(value) is not str:
        _no(value)
    snapshot.clean(value)


def _rest(out: OpenDict, declared: frozenset[str], room: int, memo: dict[int, Any]) -> None:
    """Freeze what stands in an open object beside the declared properties."""
    for key, item in out.items():
        if key not in declared:
            if not key.isascii():
                snapshot.clean(key)
            out[key] = snapshot.freeze(item, room, memo)


def _one(branches: tuple[Pass, ...], value: Any, room: int, memo: dict[int, Any]) -> Any:
    """Give the frozen value of the one branch that takes it."""
    found: Any = Mismatch
    for branch in branches:
        try:
            frozen = branch(value, room, memo)
        except Mismatch:
            continue
        if found is not Mismatch:
            raise Mismatch
        found = frozen
    if found is Mismatch:
        raise Mismatch
    return found


def _unshared(items: Any) -> None:
    """Leave arrays that repeat an item to the thorough way, which freezes and checks it once."""
    if len(set(map(id, items))) != len(items):
        raise snapshot.Unusual


@cache
def _tools() -> dict[str, Any]:
    """The globals of generated source: everything that it can name, apart from its table."""
    return {
        "__builtins__": {"type": type, "len": len, "int": int, "str": str, "float": float, "bool": bool}
        | {"dict": dict, "list": list, "tuple": tuple},
        "FD": FrozenDict,
        "FL": FrozenList,
        "OD": OpenDict,
        "M": object(),
        "LOW": -snapshot.ALWAYS_PRINTS,
        "HIGH": snapshot.ALWAYS_PRINTS,
        "Mismatch": Mismatch,
        "Unusual": snapshot.Unusual,
        "filllist": list.extend,
        "freeze": snapshot.freeze,
        "key": scalar_key,
        "newlist": list.__new__,
        "no": _no,
        "one": _one,
        "plain": snapshot.plain_scalars,
        "rest": _rest,
        "text": _text,
        "unshared": _unshared,
    }
