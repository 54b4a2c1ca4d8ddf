"""Tools with any name, schema and description, and a look at the text that is made of them."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import strategies as st

from dsh_runtime import ToolDefinition, ToolOutput

HOSTILE = [
    '"""',
    '\\"""',
    'ends with a quote"',
    "ends with a backslash\\",
    "\\\\\\",
    '""""""',
    "'''",
    "# comment",
    "line\nline",
    "line\r\nline\rline",
    "form\x0cfeed",
    "nul\x00byte",
    "\ud800",
    "\u2028\u2029\x85",
    "\u202egnirts desrever",
    "{braces} %s $HOME",
    '"""\n    async def evil(self): ...\n    """',
    "```\nend of the block\n```",
    "tab\there",
    "",
    "   ",
    "ünïcödé 🎉",
]
NAMES = [
    *["str", "int", "float", "bool", "list", "dict", "Any", "Literal", "NotRequired", "TypedDict", "Protocol"],
    *["overload", "TypeAlias", "ToolCallError", "Tools", "tools", "object", "self", "args", "None", "True", "class"],
    *["match", "print", "mro", "register", "odd-name", "a.b", "1st", "_hidden", "__init__", "__class__", "ﬁle", "é"],
    *["StrArgs", "ListResult", "ToolsByName", "async", "await", "x" * 300, "", " "],
    *['quo"te', "back\\slash", "new\nline"],
]


def texts() -> st.SearchStrategy[str]:
    pairs = st.tuples(st.text(max_size=5), st.sampled_from(HOSTILE), st.sampled_from(HOSTILE))
    return st.sampled_from(HOSTILE) | st.text(max_size=40) | pairs.map("".join)


def names() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES) | st.text(max_size=12) | st.from_regex(r"[a-z_]{1,10}", fullmatch=True)


def scalars(kind: str) -> st.SearchStrategy[Any]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "string": texts().filter(lambda text: "\ud800" not in text),
        "integer": st.integers(-(10**30), 10**30) | st.sampled_from([1.0, -3.0]),
        "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return values[kind]


@st.composite
def leaves(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object", "any"]))
    schema: dict[str, Any] = {} if kind == "any" else {"type": kind}
    if kind not in ("array", "object", "any"):
        how = draw(st.sampled_from(["plain", "enum", "const"]))
        if how == "enum":
            schema["enum"] = draw(st.lists(scalars(kind), min_size=1, max_size=4))
        elif how == "const":
            schema["const"] = draw(scalars(kind))
    return described(draw, schema)


def described(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    if draw(st.booleans()):
        schema["description"] = draw(texts())
    return schema


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    properties = draw(st.dictionaries(names(), inner, max_size=4))
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if properties:
        schema["required"] = draw(st.lists(st.sampled_from(sorted(properties)), unique=True))
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    return described(draw, schema)


def composites(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    arrays = inner.map(lambda items: {"type": "array", "items": items})
    unions = st.lists(inner, min_size=2, max_size=4).map(lambda branches: {"oneOf": branches})
    return objects(inner) | arrays | unions


def schemas() -> st.SearchStrategy[Any]:
    return st.recursive(leaves(), composites, max_leaves=12)


FOREIGN = [
    *[{"$ref": "#/$defs/x"}, {"type": ["object", "null"]}, {"anyOf": [{}, {}]}, 7, None],
    *[{"type": "object", "format": text} for text in HOSTILE],
]


@st.composite
def tools(draw: st.DrawFn) -> ToolDefinition:
    parameters = draw(objects(schemas()) | st.sampled_from(FOREIGN))
    return made(draw(names()), draw(texts()), parameters, draw(schemas()))


def toolboxes() -> st.SearchStrategy[list[ToolDefinition]]:
    return st.lists(tools(), max_size=5, unique_by=lambda tool: tool.name)


def made(name: str, description: str = "", parameters: Any = None, output: Any = None) -> ToolDefinition:
    """A tool that is only looked at."""
    return ToolDefinition(
        name=name,
        description=description,
        parameters={"type": "object"} if parameters is None else parameters,
        output=ToolOutput({} if output is None else output),
        execute=lambda args, exec: None,  # noqa: A006
    )


def declared(text: str) -> dict[str, ast.stmt]:
    """The declarations of a text by name; nothing else stands in it."""
    found: dict[str, ast.stmt] = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.ClassDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            found[statement.targets[0].id] = statement
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement
        else:
            assert isinstance(statement, ast.ImportFrom), ast.dump(statement)
            assert statement.module == "typing"
    return found


def methods(text: str) -> dict[str, ast.AsyncFunctionDef]:
    """The tools that are reached behind a dot."""
    tools = declared(text)["Tools"]
    assert isinstance(tools, ast.ClassDef)
    return {each.name: each for each in tools.body if isinstance(each, ast.AsyncFunctionDef)}


def subscripts(text: str) -> list[str]:
    """The names of the tools that are reached by subscript."""
    by_name = declared(text).get("ToolsByName")
    if by_name is None:
        return []
    assert isinstance(by_name, ast.ClassDef)
    found = []
    for each in by_name.body:
        assert isinstance(each, ast.FunctionDef)
        annotation = each.args.posonlyargs[1].annotation
        assert isinstance(annotation, ast.Subscript)
        assert isinstance(annotation.slice, ast.Constant)
        found.append(annotation.slice.value)
    return found
