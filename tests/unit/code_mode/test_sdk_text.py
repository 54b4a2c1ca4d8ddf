"""The tools as declarations of Python: what they say, and that nothing makes anything else of them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sdk_kit import HOSTILE, NAMES, declared, made, methods, schemas, subscripts, texts, toolboxes

from dsh_runtime.code_mode.sdk.text import fenced, sdk_text
from dsh_runtime.code_mode.sdk.types import annotation
from dsh_runtime.code_mode.sdk.words import MAX_DOCSTRING, comment, docstring
from dsh_runtime.tools.names import is_plain, quoted

OBJECT = {"type": "object"}


def shown(name: str) -> str:
    """What a name looks like in a literal: a lone surrogate stays one."""
    literal: str = ast.literal_eval(quoted(name))
    return literal


# Validity.


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(toolboxes())
def test_any_toolbox_makes_declarations_and_nothing_else(tools: Any) -> None:
    """Every tool is there once, by dot or by subscript, and the text runs."""
    text = sdk_text(tools)
    plain = [tool.name for tool in tools if is_plain(tool.name)]
    assert list(methods(text)) == plain
    assert subscripts(text) == [tool.name for tool in tools if tool.name not in plain]
    exec(compile(text, "<sdk>", "exec", dont_inherit=True), {"__name__": "sdk"})
    text.encode()


@given(texts())
def test_a_docstring_is_the_text_and_nothing_more(text: str) -> None:
    source = f"def f():\n{docstring(text, '    ')}    pass\n"
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    said = ast.get_docstring(function) or ""
    assert len(function.body) == (2 if said else 1)
    visible = "".join(char for char in text if char.isprintable() and not char.isspace())
    assert "".join(said.split()).replace("?", "") == visible.replace("?", "")


@given(st.text() | texts())
def test_a_comment_is_one_line(text: str) -> None:
    source = f"x = 1{comment(text)}\ny = 2\n"
    assert len(ast.parse(source).body) == 2
    assert len(source.splitlines()) == 2


@given(st.text(alphabet=st.characters()) | st.sampled_from([*HOSTILE, *NAMES]))
def test_a_quoted_text_reads_back_as_itself(text: str) -> None:
    assert ast.literal_eval(quoted(text)) == text
    assert quoted(text).isprintable()


@settings(max_examples=80, deadline=None)
@given(schemas())
def test_the_annotation_of_any_schema_is_an_expression(schema: Any) -> None:
    ast.parse(annotation(schema), mode="eval")


@pytest.mark.parametrize("kind", ["array", "object", "oneOf"])
def test_depth_is_bounded(kind: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(4_000):
        if kind == "array":
            schema = {"type": "array", "items": schema}
        elif kind == "object":
            schema = {"type": "object", "properties": {"a": schema}}
        else:
            schema = {"oneOf": [schema, {"type": "null"}]}
    text = sdk_text([made("deep", parameters={"type": "object", "properties": {"x": schema}}, output=schema)])
    assert len(text) < 20_000
    declared(text)


def test_size_is_bounded() -> None:
    wide = {"type": "object", "properties": {f"key_{n}": {"type": "string"} for n in range(5_000)}}
    many = {"type": "string", "enum": [str(n) for n in range(5_000)]}
    branches = {"oneOf": [{"type": "string", "const": str(n)} for n in range(5_000)]}
    text = sdk_text([made("a", "d" * 10**6, wide, wide), made("b", "", OBJECT, many), made("c", "", OBJECT, branches)])
    assert len(text) < 2 * MAX_DOCSTRING + 2_000
    assert "-> str:" in text
    assert "async def a(self, args: dict[str, Any], /) -> Any:" in text


# What is said.


def test_a_tool_is_a_typed_method_with_its_description() -> None:
    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where it\nis."}, "limit": {"type": "integer"}},
        "required": ["path"],
    }
    text = sdk_text([made("fs_read", "Read a file.", parameters, {"type": "array", "items": {"type": "string"}})])
    assert "class FsReadArgs(TypedDict):\n    path: str  # Where it is.\n    limit: NotRequired[int]\n" in text
    assert 'async def fs_read(self, args: FsReadArgs, /) -> list[str]:\n        """Read a file."""\n' in text


def test_objects_inside_objects_have_names_and_stand_in_front() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    output = {"type": "object", "properties": {"lines": {"type": "array", "items": inner}}, "required": ["lines"]}
    names = list(declared(sdk_text([made("grep", "", OBJECT, output)])))
    assert names.index("GrepResultLinesItem") < names.index("GrepResult")


def test_arguments_may_be_left_out_where_none_is_required() -> None:
    optional = {"type": "object", "properties": {"a": {"type": "string"}}}
    required = {**optional, "required": ["a"]}
    text = sdk_text([made("a", "", optional), made("b", "", required), made("c"), made("d", "", {"$ref": "x"})])
    defaults = {name: len(method.args.defaults) for name, method in methods(text).items()}
    assert defaults == {"a": 1, "b": 0, "c": 1, "d": 0}


def test_parameters_of_another_dialect_are_a_dict_and_shown_as_they_are() -> None:
    text = sdk_text([made("remote", "Does it.", {"type": "object", "properties": {"a": {"$ref": "#/x"}}})])
    assert "async def remote(self, args: dict[str, Any], /) -> Any:" in text
    said = ast.get_docstring(methods(text)["remote"]) or ""
    assert '{"type": "object", "properties": {"a": {"$ref": "#/x"}}}' in said


def test_keys_that_are_no_names_are_written_as_texts() -> None:
    output = {"type": "object", "properties": {"odd-key": {"type": "string"}, "class": {}}, "required": ["class"]}
    text = sdk_text([made("x", "", OBJECT, output)])
    assert 'XResult = TypedDict("XResult", {\n    "odd-key": NotRequired[str],\n    "class": Any,\n})' in text


def test_two_tools_that_sound_alike_have_types_of_their_own() -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}}}
    found = declared(sdk_text([made("do_it", "", spec), made("do.it", "", spec), made("doIt", "", spec)]))
    assert {"DoItArgs", "DoItArgs2", "DoItArgs3"} <= set(found)


def test_the_text_depends_on_the_tools_alone() -> None:
    tools = [made(name, "d", {"type": "object", "properties": {"a": {}}}) for name in ("b", "a", "odd-1", "odd-2")]
    assert sdk_text(tools) == sdk_text(list(tools))


def test_without_tools_there_is_an_empty_class() -> None:
    assert methods(sdk_text([])) == {}


@given(texts())
def test_nothing_breaks_out_of_a_fence(text: str) -> None:
    lines = fenced(text).splitlines()
    fence = lines[0].removesuffix("python")
    assert set(fence) == {"`"}
    assert lines[-1] == fence
    assert not any(line.strip().startswith(fence) for line in lines[1:-1])


# What a type checker says.

PROGRAM = """
async def program() -> None:
    found = await tools.search({{"query": "x", "kind": "file"}})
    for match in found["matches"]:
        line: int = match["line"]
        text: str | None = match.get("text")
        print(line, text)
    await tools.now()
    await tools["odd-name"]({{"odd-key": 1.5}})
    await tools["other.name"]()
    await tools.list()
    {mistake}
"""
SEARCH = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "kind": {"type": "string", "enum": ["file", "text"]}},
    "required": ["query"],
}
MATCHES = {
    "type": "object",
    "properties": {
        "matches": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"line": {"type": "integer"}, "text": {"oneOf": [{"type": "string"}, {"type": "null"}]}},
                "required": ["line"],
            },
        }
    },
    "required": ["matches"],
}


def toolbox() -> list[Any]:
    """Tools of every kind, and every odd name and text that the other tests know."""
    odd = {"type": "object", "properties": {"odd-key": {"type": "number"}}}
    usual = [
        made("search", "Search.", SEARCH, MATCHES),
        made("now", "The time.", OBJECT, {"type": "string"}),
        made("odd-name", "Odd.", odd),
        made("other.name"),
    ]
    taken = {tool.name for tool in usual}
    typed = {"type": "object", "properties": {name: {"type": "array", "items": MATCHES} for name in NAMES}}
    unions = {"oneOf": [{"type": "integer", "enum": [1, 2]}, {"type": "array", "items": {"type": "boolean"}}, typed]}
    output = {"type": "object", "properties": {"str": {"type": "integer"}, "list": {"type": "string"}, "dict": unions}}
    texts = [HOSTILE[at % len(HOSTILE)] for at in range(len(NAMES))]
    more = [made(name, texts[at], typed, output if at % 2 else unions) for at, name in enumerate(NAMES)]
    return [*usual, *(tool for tool in more if tool.name not in taken and tool.name != "list"), made("list")]


MISTAKES = {
    "": None,
    'await tools.search({"kind": "file"})': 'Missing key "query"',
    'await tools.search({"query": 1})': 'item "query" has type "str"',
    'await tools.search({"query": "x", "kind": "folder"})': 'item "kind" has type',
    'found["missing"]': 'no key "missing"',
    "await tools.missing({})": 'no attribute "missing"',
    'await tools["missing"]({})': "No overload variant",
    "tools.now() + 1": "Unsupported operand types",
}


def test_a_type_checker_accepts_the_text_and_finds_the_mistakes_of_programs(tmp_path: Path) -> None:
    text = sdk_text(toolbox())
    for at, mistake in enumerate(MISTAKES):
        (tmp_path / f"program_{at}.py").write_text(text + PROGRAM.format(mistake=mistake), encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", str(tmp_path / "cache"), "."]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = [line for line in checked.stdout.splitlines() if ": error:" in line]
    for at, (mistake, complaint) in enumerate(MISTAKES.items()):
        found = [line for line in lines if line.startswith(f"program_{at}.py:")]
        assert len(found) == (0 if complaint is None else 1), (mistake, found)
        assert complaint is None or complaint in found[0]
