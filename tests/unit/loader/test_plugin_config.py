"""A plugin's config becomes the object that it declares, or a list of everything that is wrong with it."""

from __future__ import annotations

import datetime
import enum
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Optional, Union

import attrs
import fastjsonschema
import pytest
from attrs import validators
from hypothesis import given
from hypothesis import strategies as st

from dsh_runtime.loader.errors import ConfigError, PluginLoadError
from dsh_runtime.loader.load import load_config
from dsh_runtime.loader.plugin_config import build_config, build_row_config

Write = Callable[[str, str], Path]


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Level(enum.StrEnum):
    LOW = "low"


class Number(enum.IntEnum):
    ONE = 1


@attrs.frozen
class Rule:
    tool: str
    limit: int = attrs.field(default=1, validator=validators.ge(0))
    rules: list[Rule] = attrs.field(factory=list)


@attrs.frozen
class Settings:
    rules: list[Rule] = attrs.field(factory=list)
    by_name: dict[str, Rule] = attrs.field(factory=dict)
    _token: str = ""


def field_class(kind: Any) -> type[Any]:
    return attrs.make_class("Config", {"x": attrs.field(type=kind)})


def build(kind: Any, value: object) -> Any:
    return build_config(field_class(kind), {"x": value}, owner="p").x


def problems(schema: object, config: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        build_config(schema, config, owner="p")
    return [str(problem) for problem in caught.value.problems]


def refusal(kind: Any, value: object) -> list[str]:
    return problems(field_class(kind), {"x": value})


# --- what is taken ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, 5, 5),
        (float, 5, 5.0),
        (float, 0.5, 0.5),
        (str, "5", "5"),
        (bool, True, True),
        (Any, {"a": [1]}, {"a": [1]}),
        (object, [1], [1]),
        (Path, "/x", Path("/x")),
        (Mode, "fast", Mode.FAST),
        (Level, "low", Level.LOW),
        (Number, 1, Number.ONE),
        (Literal["a", 1], 1, 1),
        (Optional[int], None, None),  # noqa: UP045 - the older spelling is one too
        (int | None, None, None),
        (int | None, 3, 3),
        (Union[int, str], "x", "x"),  # noqa: UP007 - the older spelling is one too
        (float | int, 1, 1),
        (int | bool, True, True),
        (str | list[str], ["a"], ["a"]),
        (Rule | Settings, {"token": "x"}, Settings(token="x")),
        (list[int], [1, 2], [1, 2]),
        (list, [1, "a"], [1, "a"]),
        (Sequence[int], (1,), [1]),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[str], ["a", "b"], {"a", "b"}),
        (frozenset[int], [1], frozenset({1})),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (Mapping[str, list[Rule]], {"a": [{"tool": "t"}]}, {"a": [Rule("t")]}),
        (dict, {"a": 1}, {"a": 1}),
        (datetime.date, datetime.date(2020, 1, 2), datetime.date(2020, 1, 2)),
        (datetime.datetime, datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 2)),
    ],
)
def test_values_of_the_declared_type_are_taken(kind: Any, value: object, expected: object) -> None:
    built = build(kind, value)
    assert built == expected
    assert type(built) is type(expected)


def test_nested_classes_are_built_and_absent_keys_get_their_defaults() -> None:
    config = {"rules": [{"tool": "a", "rules": [{"tool": "b"}]}], "by_name": {"c": {"tool": "d", "limit": 0}}}
    assert build_config(Settings, config, owner="p") == Settings([Rule("a", rules=[Rule("b")])], {"c": Rule("d", 0)})


def test_a_private_field_is_set_by_its_public_name() -> None:
    assert build_config(Settings, {"token": "x"}, owner="p") == Settings(token="x")
    assert problems(Settings, {"_token": "x"}) == [
        "_token: plugin 'p': there is no key '_token' here; did you mean 'token'?"
    ]


def test_no_config_at_all_is_the_same_as_an_empty_one() -> None:
    assert build_config(Settings, None, owner="p") == Settings()


def test_an_instance_of_the_class_is_taken_as_it_is() -> None:
    settings = Settings()
    assert build_config(Settings, settings, owner="p") is settings


def test_the_plugin_gets_a_copy() -> None:
    given_config = {"x": {"list": [1]}}
    build_config(field_class(Any), given_config, owner="p").x["list"].append(2)
    assert given_config == {"x": {"list": [1]}}


# --- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (int, "5", "an integer; got a string, '5'"),
        (int, True, "an integer; got a boolean, True"),
        (int, 1.0, "an integer; got a float, 1.0"),
        (bool, 1, "true or false; got an integer, 1"),
        (bool, "true", "true or false; got a string, 'true'"),
        (str, 5, "a string; got an integer, 5"),
        (float, "1", "a number; got a string, '1'"),
        (float, True, "a number; got a boolean, True"),
        (Path, 1, "a path; got an integer, 1"),
        (Mode, "FAST", "one of 'fast', 'slow'; got a string, 'FAST'"),
        (Level, "high", "one of 'low'; got a string, 'high'"),
        (Number, True, "one of 1; got a boolean, True"),
        (Literal["a", 1], True, "one of 'a', 1; got a boolean, True"),
        (Literal["a"], ["a"], "one of 'a'; got an array"),
        (int | None, "x", "an integer; got a string, 'x'"),
        (int | str, [], "an integer or a string; got an array"),
        (list[int], "12", "an array; got a string, '12'"),
        (list[int], {"a": 1}, "an array; got a table"),
        (set[int], "12", "an array; got a string, '12'"),
        (tuple[int, str], [1], "an array of 2 items; got an array"),
        (dict[str, int], [1], "a table; got an array"),
        (Rule, "x", "a table; got a string, 'x'"),
        (datetime.date, datetime.datetime(2020, 1, 2), "a date; got a datetime"),
    ],
)
def test_nothing_is_converted_that_would_be_a_guess(kind: Any, value: object, expected: str) -> None:
    assert refusal(kind, value) == [f"x: plugin 'p': expected {expected}"]


def test_every_offending_path_is_listed_once() -> None:
    config = {
        "rules": [{"tool": 1}, {}, "x", {"tool": "a", "rules": [{"tol": "b"}]}],
        "by_name": {"k": {"tool": "a", "limit": "x"}},
        "token": False,
        "tokn": 1,
    }
    assert problems(Settings, config) == [
        "rules[0].tool: plugin 'p': expected a string; got an integer, 1",
        "rules[1]: plugin 'p': the required key 'tool' is missing; add it",
        "rules[2]: plugin 'p': expected a table; got a string, 'x'",
        "rules[3].rules[0]: plugin 'p': the required key 'tool' is missing; add it",
        "rules[3].rules[0].tol: plugin 'p': there is no key 'tol' here; did you mean 'tool'?",
        "by_name.k.limit: plugin 'p': expected an integer; got a string, 'x'",
        "token: plugin 'p': expected a string; got a boolean, False",
        "tokn: plugin 'p': there is no key 'tokn' here; did you mean 'token'?",
    ]


@attrs.frozen
class Limits:
    low: int = attrs.field(validator=validators.ge(0))
    high: int = attrs.field()
    name: str = attrs.field(default="x", validator=validators.min_len(1))

    @high.validator
    def _above_low(self, attribute: Any, value: int) -> None:
        if value < self.low:
            raise ValueError("'high' must not be below 'low'")


def test_every_validator_is_heard() -> None:
    assert [p.partition(": plugin")[0] for p in problems(Limits, {"low": -1, "high": -2, "name": ""})] == [
        "low",
        "high",
        "name",
    ]


def test_a_validator_that_looks_at_a_missing_field_adds_no_noise() -> None:
    assert problems(Limits, {"high": 1}) == ["plugin 'p': the required key 'low' is missing; add it"]


@attrs.frozen
class Pair:
    a: int = 0
    b: int = 0

    def __attrs_post_init__(self) -> None:
        if self.a > self.b:
            raise ValueError("'a' is above 'b'")


def test_a_refusal_by_the_class_itself_is_reported_at_the_table() -> None:
    assert problems(field_class(Pair), {"x": {"a": 1}}) == ["x: plugin 'p': 'a' is above 'b'"]


def test_problems_stand_at_their_lines_in_the_file(write: Write) -> None:
    file = write(
        "dsh.toml",
        '[[plugin]]\nid = "p"\nuse = "x"\n[plugin.config]\ntoken = "${env:T}"\n[[plugin.config.rules]]\nlimit = "x"\n',
    )
    (row,) = load_config(file, environ={"T": "s3cret"}).rows
    with pytest.raises(ConfigError) as caught:
        build_row_config(Settings, row)
    base = ("plugin", 0, "config", "rules", 0)
    found = [(problem.path, problem.location.line if problem.location else 0) for problem in caught.value.problems]
    assert found == [(base, 6), ((*base, "limit"), 7)]


def test_a_required_key_that_is_missing_is_reported_at_the_plugin(write: Write) -> None:
    file = write("dsh.toml", '\n[[plugin]]\nid = "p"\nuse = "x"\n')
    with pytest.raises(ConfigError) as caught:
        build_row_config(Rule, load_config(file).rows[0])
    assert str(caught.value) == f"{file}:2: plugin[0].config: plugin 'p': the required key 'tool' is missing; add it"


@attrs.frozen
class Secretive:
    token: int | None = None
    choice: Literal["a"] = "a"
    pin: str = attrs.field(default="1", validator=validators.matches_re("[0-9]+"))


@pytest.mark.parametrize("key", ["token", "choice", "pin"])
def test_a_secret_is_never_quoted(key: str) -> None:
    (row,) = load_config(
        {"plugin": [{"id": "p", "use": "x", "config": {key: "${env:T}"}}]}, environ={"T": "s3cret"}
    ).rows
    with pytest.raises(ConfigError) as caught:
        build_row_config(Secretive, row)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_plugin_without_config_accepts_none() -> None:
    assert build_config(None, {}, owner="p") is None
    assert problems(None, {"a": 1}) == ["plugin 'p' takes no config, and was given 'a'; remove it"]


@pytest.mark.parametrize("schema", [int, "Config", 3, Settings()])
def test_a_config_declaration_of_another_kind_is_the_plugins_fault(schema: object) -> None:
    with pytest.raises(PluginLoadError, match="must be an attrs class or a JSON Schema"):
        build_config(schema, {}, owner="p")


def test_a_class_that_cannot_be_built_is_the_plugins_fault() -> None:
    with pytest.raises(PluginLoadError, match="'Config' of plugin 'p' cannot be built"):
        build(complex, 1)
    with pytest.raises(PluginLoadError, match="'Config' of plugin 'p' cannot be built"):
        build(list[complex], [1])


def test_a_config_that_is_no_table_is_refused() -> None:
    assert problems(Settings, [1]) == ["the config of plugin 'p' is 'list'; it must be a table"]


# --- JSON Schema --------------------------------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {
        "level": {"type": "integer", "default": 3},
        "a.b": {"type": "array", "items": {"type": "object", "required": ["tool"], "properties": {"tool": {}}}},
    },
    "additionalProperties": False,
}


def test_a_json_schema_gives_a_dict_of_its_own_without_defaults() -> None:
    config = {"a.b": [{"tool": 1}]}
    built = build_config(SCHEMA, config, owner="p")
    assert built == config
    assert built["a.b"] is not config["a.b"]


@pytest.mark.skipif(
    "fast_fail" not in inspect.signature(fastjsonschema.compile).parameters,
    reason="fastjsonschema reports more than one failure from 2.22 on",
)
def test_a_json_schema_reports_every_offending_path() -> None:
    found = problems(SCHEMA, {"level": "x", "a.b": [{"tool": 1}, {}], "levl": 1})
    assert [line.partition(": ")[0] for line in found] == ["level", '"a.b"[1]', "levl"]
    assert found[2] == "levl: plugin 'p': there is no key 'levl' here; did you mean 'level'?"


def test_local_references_are_followed() -> None:
    schema = {"properties": {"a": {"$ref": "#/definitions/text"}}, "definitions": {"text": {"type": "string"}}}
    assert problems(schema, {"a": 1}) == ["a: plugin 'p': must be string"]


@pytest.mark.parametrize("uri", ["http://localhost/x", "file:///etc/passwd", "other.json#/a", "ftp://x/y"])
def test_other_references_are_refused_and_never_fetched(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("urllib.request.urlopen", lambda *_: pytest.fail("fetched"))
    with pytest.raises(PluginLoadError, match="only local references"):
        build_config({"properties": {"a": {"$ref": uri}}}, {}, owner="p")
    with pytest.raises(PluginLoadError):
        build_config({"$id": uri, "properties": {"a": {"$ref": "#/nowhere"}}}, {}, owner="p")


@pytest.mark.parametrize(
    "schema", [{"type": "objekt"}, {"type": 3}, {"properties": 3}, {"pattern": "("}, {"$ref": "#"}]
)
def test_a_schema_that_cannot_be_compiled_is_the_plugins_fault(schema: dict[str, object]) -> None:
    with pytest.raises(PluginLoadError, match="'Config' of plugin 'p' cannot be used"):
        build_config(schema, {"a": "x"}, owner="p")


def test_a_secret_is_never_quoted_by_a_json_schema() -> None:
    (row,) = load_config(
        {"plugin": [{"id": "p", "use": "x", "config": {"a": "${env:T}"}}]}, environ={"T": "s3cret"}
    ).rows
    for rule in ({"enum": ["x"]}, {"type": "integer"}, {"pattern": "^x$"}, {"maxLength": 1}, {"const": "x"}):
        with pytest.raises(ConfigError) as caught:
            build_row_config({"properties": {"a": rule}}, row)
        assert "s3cret" not in str(caught.value)


# --- properties ---------------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
shaped = st.dictionaries(st.sampled_from(["rules", "by_name", "token", "tool", "limit", "x"]), json_values, max_size=4)


@given(json_values | shaped)
def test_any_value_is_built_or_refused_with_paths_that_exist(value: object) -> None:
    try:
        build_config(Settings, value, owner="p")
    except ConfigError as error:
        assert error.problems
        for problem in error.problems:
            inside: Any = value
            for key in problem.path:
                inside = inside[key]
