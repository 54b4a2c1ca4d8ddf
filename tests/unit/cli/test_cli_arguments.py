"""How arguments on a command line become the arguments of a call."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_runtime.cli.arguments import build_arguments, parse_document, split_pairs
from dsh_runtime.cli.errors import CliError

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer"},
        "flag": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object", "properties": {"year": {"type": "integer"}, "word": {"type": "string"}}},
        "a.b": {"type": "string"},
        "any": {},
    },
}


def build(*texts: str, document: dict[str, Any] | None = None) -> dict[str, Any]:
    return build_arguments(document or {}, split_pairs(texts), SCHEMA, "search")


def refusal(*texts: str, document: dict[str, Any] | None = None) -> str:
    with pytest.raises(CliError) as caught:
        build(*texts, document=document)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("name=Ada", {"name": "Ada"}),
        ("name=5", {"name": "5"}),
        ("name=", {"name": ""}),
        ('name="Ada"', {"name": '"Ada"'}),
        ("name=a=b:=c", {"name": "a=b:=c"}),
        ("name=-x", {"name": "-x"}),
        ("count=-5", {"count": -5}),
        ("flag=true", {"flag": True}),
        ('tags=["new"]', {"tags": ["new"]}),
        ("filter.year=2024", {"filter": {"year": 2024}}),
        ("filter.word=2024", {"filter": {"word": "2024"}}),
        ("a.b=1", {"a.b": "1"}),
        ("any=5", {"any": 5}),
        ("any=five", {"any": "five"}),
        ("undeclared=[1]", {"undeclared": [1]}),
        ("undeclared=some text", {"undeclared": "some text"}),
        ("x.y.z=1", {"x": {"y": {"z": 1}}}),
        (".hidden=1", {".hidden": 1}),
        ('name:="Ada"', {"name": "Ada"}),
        ("name:=5", {"name": 5}),
    ],
)
def test_a_value_is_read_by_the_tools_own_schema(text: str, arguments: dict[str, Any]) -> None:
    """A string parameter takes the text as it is, others JSON; := forces JSON; a dot leads into an object."""
    assert build(text) == arguments


def test_single_arguments_are_put_into_those_of_a_document_which_stays_as_it_was() -> None:
    """--json and key=value go together."""
    document = {"name": "Ada", "filter": {"year": 2023, "word": "x"}}
    assert build("name=Bob", "filter.year=2024", document=document) == {
        "name": "Bob",
        "filter": {"year": 2024, "word": "x"},
    }
    assert document == {"name": "Ada", "filter": {"year": 2023, "word": "x"}}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["name"], "argument 'name' is no key=value; write name=text, name:=JSON, or the whole as --json '{…}'"),
        (["=x"], "argument '=x' is no key=value; write name=text, name:=JSON, or the whole as --json '{…}'"),
        ([":=1"], "argument ':=1' is no key=value; write name=text, name:=JSON, or the whole as --json '{…}'"),
        (["count=three"], "argument 'count' of tool 'search' takes an integer, and 'three' is no JSON; write a number"),
        (
            ["name:=Ada"],
            "argument 'name' of tool 'search' takes a string, and 'Ada' is no JSON; write key=text for a text",
        ),
        (["flag=yes"], "argument 'flag' of tool 'search' takes a boolean, and 'yes' is no JSON; write true"),
        (["tags=new"], "argument 'tags' of tool 'search' takes an array, and 'new' is no JSON; write '[…]'"),
        (
            ["any:=five"],
            "argument 'any' of tool 'search' is given as JSON, and 'five' is no JSON; quote texts: '\"…\"'",
        ),
        (["count=NaN"], "argument 'count' of tool 'search' takes an integer, and 'NaN' is no JSON; write a number"),
        (
            ["name=a", "name=b"],
            "argument 'name' of tool 'search' is given twice; give it once, or a list as JSON",
        ),
        (
            ["x=1", "x.y=2"],
            "argument 'x.y' of tool 'search' goes into 'x', which is a number; give one of the two",
        ),
    ],
)
def test_an_argument_that_cannot_be_read_is_refused_with_what_to_write(texts: list[str], message: str) -> None:
    """The message names the argument, what it takes, what was given and a remedy."""
    assert refusal(*texts) == message


def test_a_long_value_is_cut_in_the_message() -> None:
    """A message stays readable whatever it quotes."""
    assert len(refusal("count=" + "x" * 10_000)) < 250


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "does not hold JSON"),
        ("", "does not hold JSON"),
        ("[1]", "holds an array"),
        ('"x"', "holds a string"),
        ("null", "holds null"),
        ("true", "holds a boolean"),
        ("1.5", "holds a number"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' + "1" * 5_000 + "}", "does not hold JSON"),
    ],
)
def test_a_document_is_one_json_object(text: str, problem: str) -> None:
    """What only Python takes for JSON is refused too."""
    with pytest.raises(CliError) as caught:
        parse_document(text, "--json")
    assert caught.value.message.startswith("--json ")
    assert problem in caught.value.message
